"""The space of recipes: arguments of a loss move where an arm writes them, and are what the library takes."""

from __future__ import annotations

from typing import Any

import pytest

from corpora.store.fields import changed, flat
from orchestration.study.run import canonical
from search_spaces.sentence_transformers import SPACE
from search_spaces.space import default_point, moves, narrowed, settings_at
from trainers.sentence_transformers.losses import LOSSES
from trainers.sentence_transformers.settings import Settings, defining

ARGUMENTS = {one.name.partition(".")[2]: one for one in SPACE if one.name.startswith("loss.")}


def moving(loss: Any) -> set[str]:
    return {one.name for one in SPACE if moves(one, Settings(loss=loss), {}) and "." in one.name}


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("MultipleNegativesRankingLoss", set()),
        ({"name": "MultipleNegativesRankingLoss"}, set()),
        ({"name": "MultipleNegativesRankingLoss", "scale": 20}, {"loss.scale"}),
        (
            {"name": "GISTEmbedLoss", "guide": "g", "temperature": 0.01, "margin": 0.0},
            {"loss.temperature", "loss.margin"},
        ),
        ({"pairs": {"name": "CoSENTLoss", "scale": 20.0}}, set()),
        ({"scale": "CoSENTLoss", "margin": {"name": "AnglELoss"}}, set()),  # data sets of these names
    ],
)
def test_an_argument_moves_where_the_arm_has_it(loss: Any, names: set[str]) -> None:
    assert moving(loss) == names


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_losses_take_all_values_of_an_argument(argument: str) -> None:
    taking = [name for name, kind in LOSSES.items() if argument in kind.arguments]
    assert taking
    dimension = ARGUMENTS[argument]
    for name in taking:
        needed = {"guide": "g"} if "guide" in LOSSES[name].required else {}
        start = {"name": name, **needed, argument: dimension.high}
        for value in (dimension.low, dimension.high):
            made = settings_at(SPACE, Settings(loss=start), {**own_point(start), f"loss.{argument}": value})
            assert made.loss == {**start, argument: value}


def own_point(loss: Any) -> dict[str, Any]:
    point = default_point(SPACE, Settings(loss=loss))
    assert point is not None
    return point


def test_a_moved_argument_is_the_arm_that_has_it_written() -> None:
    """The same recipe, and so the same run."""
    start = Settings(loss={"name": "CoSENTLoss", "scale": 20.0}, learning_rate=1e-4)
    made = settings_at(SPACE, start, {**own_point(start.loss), "learning_rate": 1e-4, "loss.scale": 30.0})
    assert made == Settings(loss={"name": "CoSENTLoss", "scale": 30.0}, learning_rate=1e-4)
    assert defining(made) == defining(Settings(loss={"name": "CoSENTLoss", "scale": 30.0}, learning_rate=1e-4))
    assert start.loss == {"name": "CoSENTLoss", "scale": 20.0}  # as it was


def test_values_of_an_argument_are_those_that_are_listed() -> None:
    """20 and 20.0 are one loss and two ids: a point has the id of an arm in which the same is written."""
    listed = narrowed(ARGUMENTS["scale"], [20, 40.0])
    assert [type(value) for value in listed.choices] == [int, float]
    made = settings_at((listed,), Settings(loss={"name": "CoSENTLoss", "scale": 40.0}), {"loss.scale": 20})
    assert canonical(defining(made)) == canonical(defining(Settings(loss={"name": "CoSENTLoss", "scale": 20})))


def test_keys_of_a_mapping_are_read_and_written_by_both_names() -> None:
    made = Settings(loss={"name": "CoSENTLoss", "scale": 20.0}, prompts={"one": "query: "})
    assert {"loss.name": "CoSENTLoss", "loss.scale": 20.0, "prompts.one": "query: "}.items() <= flat(made).items()
    assert changed(made, flat(made)) == made
    other = changed(made, {"loss": {"name": "AnglELoss", "scale": 1.0}, "loss.scale": 2.0})
    assert other.loss == {"name": "AnglELoss", "scale": 2.0}
