"""Every family's space: its names are settings, its points are arms that can be built, the defaults among them."""

from __future__ import annotations

import importlib
import math
import pkgutil
from typing import Any

import numpy as np
import pytest

import search_spaces
from corpora.store.fields import field_types
from search_spaces.space import Dimension, Space, declared, default_point, drawn, moves, settings_at

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
    assert {*names, *of_conditions} <= field_types(settings_of(family)).keys()
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
