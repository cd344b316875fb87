"""Every family's space: its names are settings, its points are arms that can be built, the defaults among them."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from typing import Any

import numpy as np
import pytest

import search_spaces
from corpora.store.fields import field_types
from search_spaces.space import (
    Dimension,
    Space,
    around,
    declared,
    default_point,
    drawn,
    grid,
    moves,
    narrowed,
    settings_at,
)

FAMILIES = [module.name for module in pkgutil.iter_modules(search_spaces.__path__) if module.name != "space"]
DRAWS = 200


def space_of(family: str) -> Space:
    return importlib.import_module(f"search_spaces.{family}").SPACE


def settings_of(family: str) -> type:
    return importlib.import_module(f"trainers.{family}.settings").Settings


def random_value(dimension: Dimension, rng: np.random.Generator) -> Any:
    if dimension.choices:
        return dimension.choices[rng.integers(len(dimension.choices))]
    assert dimension.low is not None
    assert dimension.high is not None
    if dimension.log:
        drawn = float(np.exp(rng.uniform(np.log(dimension.low), np.log(dimension.high))))
    else:
        drawn = float(rng.uniform(dimension.low, dimension.high))
    value = min(max(drawn, dimension.low), dimension.high)
    return round(value) if dimension.whole else value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_name_is_a_setting(family: str) -> None:
    of_conditions = {name for dimension in space_of(family) for name in dimension.when}
    names = [dimension.name for dimension in space_of(family)]
    assert {name.partition(".")[0] for name in (*names, *of_conditions)} <= field_types(settings_of(family)).keys()
    assert len(set(names)) == len(names)
    assert all(dimension.source for dimension in space_of(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_conditions_look_at_what_was_drawn_before(family: str) -> None:
    names = [dimension.name for dimension in space_of(family)]
    for place, dimension in enumerate(space_of(family)):
        assert not set(dimension.when) & set(names[place:]), dimension.name


@pytest.mark.parametrize("family", FAMILIES)
def test_the_papers_defaults_lie_inside(family: str) -> None:
    defaults = settings_of(family)()
    point = default_point(space_of(family), defaults)
    assert point is not None
    assert settings_at(space_of(family), defaults, point) == defaults


@pytest.mark.parametrize(
    "outside", [{"margin": 0.2}, {"learning_rate": 1e-3}, {"margin": 0.2, "weight_decay": 1.0}]
)
def test_settings_outside_of_any_range_are_no_point(outside: dict[str, float]) -> None:
    assert default_point(space_of("cale"), settings_of("cale")(**outside)) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_random_points_can_be_built_and_move_only_what_matters(family: str) -> None:
    defining = importlib.import_module(f"trainers.{family}.settings").defining
    space, arm, rng = space_of(family), settings_of(family)(), np.random.default_rng(0)
    for _ in range(DRAWS):
        point = drawn(space, arm, lambda dimension: random_value(dimension, rng))
        made = settings_at(space, arm, point)
        assert {name: getattr(made, name) for name in point} == point
        assert set(point) <= set(defining(made))
        assert all(moves(dimension, arm, point) == (dimension.name in point) for dimension in space)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"low": 0.5},
        {"low": 0.5, "high": 0.5},
        {"low": 0.0, "high": 1.0, "log": True},
        {"low": 1, "choices": (2,)},
        {"log": True, "choices": (2,)},
        {"low": 0.1, "high": 1.0, "paper": (0.5, 2.0)},
        {"choices": (1, 2), "paper": (3,)},
    ],
)
def test_a_dimension_that_cannot_be_drawn_from_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"margin: .*\n  accepted: choices, or low below high, with log from above 0"
    ):
        Dimension(name="margin", source="ours", **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 0.0, "high": math.inf},
        {"low": math.nan, "high": 1.0},
        {"low": -1.7e308, "high": 1.7e308},
        {"low": 0, "high": 10**400},
        {"low": False, "high": 2},
        {"low": "a", "high": "b"},
        {"low": 0.0, "high": 1.0, "log": True},
        {"low": 1.0, "high": 2.0, "log": 1},
        {"low": 1.0, "high": 1.0},
        {"low": 2.0, "high": 1.0},
        {"low": 1.0},
        {"low": 1.0, "high": 2.0, "step": 0.1},
        [0.2, math.nan],
        [0.2, math.inf],
        [10**400],
        [True, 1],
        [0, False, 2],
        [1, 1.0],
        [],
        [[1]],
    ],
)
def test_values_that_cannot_be_searched_are_refused(wrong: Any) -> None:
    """Also those that are one and the same wherever points are told apart."""
    with pytest.raises(ValueError, match="numbers are finite"):
        declared("lr", wrong)


def test_values_of_several_kinds_are_searched() -> None:
    assert declared("lr", [True, "1", 2, 0.5]).choices == (True, "1", 2, 0.5)
    assert declared("lr", {"low": 1e-6, "high": 1, "log": True}).log


RATE = Dimension(name="rate", low=0.5, high=2.0, log=True, paper=(1, 1.5), source="ours")
COUNT = Dimension(name="count", low=1, high=8, source="ours")
WORD = Dimension(name="word", choices=("a", "b", 2.0, True, None), paper=("a", "b"), source="ours")


@pytest.mark.parametrize(
    ("dimension", "inside", "outside"),
    [
        (RATE, [0.5, 1, 2.0], [0.49, 2.01, True, "1", None]),
        (COUNT, [1, 8], [0, 9, 2.0, True]),
        (WORD, ["a", 2, 2.0, True, None], ["c", 1, False, "2"]),
    ],
)
def test_what_a_dimension_holds(dimension: Dimension, inside: list, outside: list) -> None:
    assert [value for value in inside + outside if dimension.holds(value)] == inside


@pytest.mark.parametrize(
    ("dimension", "wanted", "ends", "choices"),
    [
        (RATE, "all", (0.5, 2.0), ()),
        (RATE, "paper", (None, None), (1.0, 1.5)),
        (RATE, {"high": 1}, (0.5, 1.0), ()),
        (RATE, {"low": 1, "high": 2}, (1.0, 2.0), ()),
        (RATE, [2, 1], (None, None), (2.0, 1.0)),
        (COUNT, {"low": 2}, (2, 8), ()),
        (COUNT, [4], (None, None), (4,)),
        (WORD, ["b", 2, None], (None, None), ("b", 2.0, None)),
        (WORD, [True, "a"], (None, None), (True, "a")),
    ],
)
def test_a_dimension_as_a_study_wants_it(dimension: Dimension, wanted: Any, ends: tuple, choices: tuple) -> None:
    """Values have the type that the dimension declares, as 1 and 1.0 would be runs of two ids.

    A study may leave out some of the paper's grid.
    """
    found = narrowed(dimension, wanted)
    assert (found.low, found.high, found.choices) == (*ends, choices)
    assert list(map(type, (*ends, *choices))) == list(map(type, (found.low, found.high, *found.choices)))
    assert found.log == (dimension.log and not choices)
    assert found.paper == tuple(value for value in dimension.paper if found.holds(value))


@pytest.mark.parametrize(
    ("dimension", "wanted", "accepted"),
    [
        (RATE, "some", "all, paper, {low: …, high: …} or a list of different values, within 0.5 to 2.0 (log)"),
        (COUNT, "paper", "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (WORD, {"low": 1}, "all, paper, a list of different values, within a, b, 2.0, True, None"),
        (COUNT, {}, "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (COUNT, [], "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (COUNT, {"low": 1, "step": 2}, "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (COUNT, [1, 2, 1], "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (COUNT, 4, "all, {low: …, high: …} or a list of different values, within 1 to 8"),
        (COUNT, [1, 9], "within 1 to 8"),
        (COUNT, [1, 2.0], "within 1 to 8"),
        (RATE, {"low": 0.4}, "within 0.5 to 2.0 (log)"),
        (RATE, {"low": 2.0}, "low below high"),
        (RATE, {"low": 2, "high": 1}, "low below high"),
        (WORD, ["c"], "within a, b, 2.0, True, None"),
    ],
)
def test_what_no_study_can_want_of_a_dimension(dimension: Dimension, wanted: Any, accepted: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(accepted)}$"):
        narrowed(dimension, wanted)


@pytest.mark.parametrize(
    ("wanted", "whole"),
    [
        ({"low": 1, "high": 3}, True),
        ({"low": 1, "high": 3.0}, False),
        ({"low": 1.0, "high": 3}, False),
        ({"low": -2, "high": 3, "log": False}, True),
    ],
)
def test_a_range_of_the_study_is_of_whole_numbers_if_its_ends_are(wanted: dict[str, Any], whole: bool) -> None:
    found = declared("k", wanted)
    assert (found.low, found.high, found.whole, found.log) == (wanted["low"], wanted["high"], whole, False)


def test_a_grid_has_every_point_once_and_no_range() -> None:
    """A dimension that does not move makes points that are the same."""
    hard = Dimension(name="hard_negatives", choices=(True, False), source="ours")
    margin = Dimension(name="hn_margin", choices=(0.1, 0.2), when={"hard_negatives": (True,)}, source="ours")
    arm = settings_of("concept")(hard_negatives=True)
    points = list(grid((hard, margin), arm))
    assert points == [
        {"hard_negatives": True, "hn_margin": 0.1},
        {"hard_negatives": True, "hn_margin": 0.2},
        {"hard_negatives": False},
    ]
    ranged = Dimension(name="temperature", low=0.1, high=0.2, source="ours")
    with pytest.raises(ValueError, match=r"^temperature: ranges; accepted for a grid: a list of values"):
        list(grid((hard, ranged, margin), arm))


@pytest.mark.parametrize(
    ("wanted", "ends", "choices"),
    [
        ("all", (0.02, 1.0), ()),
        ({"low": 0.5, "high": 0.9}, (0.5, 0.9), ()),
        ({"low": 1.0}, (None, None), (1.0,)),
        ([0.5, 1.0, 2.0], (None, None), (0.5, 1.0)),
    ],
)
def test_a_capped_dimension_ends_at_its_cap(wanted: Any, ends: tuple, choices: tuple) -> None:
    """Beyond 1 an interpolation is none; other arms may go up to 2."""
    (gamma,) = (one for one in space_of("difficulty") if one.name == "gamma")
    space = (narrowed(gamma, wanted),)
    interpolated = settings_of("difficulty")(form=gamma.capped["form"][0], interp_form="interpolate")
    (found,) = around(space, interpolated)
    assert (found.low, found.high, found.choices) == (*ends, choices)
    assert around(space, settings_of("difficulty")(form="pair_ungated")) == space
