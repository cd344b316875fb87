"""Scores that no ledger or verdict could take are told of where they are made, by task and metric."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Task
from tests.measuring import given, scores_of

VALUES = np.array([1.0, 0.0, 0.5])
LENGTHS = "odd/hits: values, item_ids, group_ids, gold and taken_for are of different lengths"


def scored(scores: Any) -> list[Score]:
    task = Task(
        name="odd",
        metrics={"odd/hits": True},
        headline="odd/hits",
        benchmark=given(("a", "b")),
        texts=list,
        score=lambda rows, encode: scores,
        source="made up",
    )
    return scores_of({"odd": task}, ["odd"], lambda texts: np.ones((len(texts), 2), np.float32))


def hits(**changed: Any) -> Score:
    named = {
        "item_ids": list("xyz"),
        "group_ids": list("ppq"),
        "values": VALUES,
        "value": 0.5,
        "aggregate": "mean",
    }
    return Score(**{"metric": "odd/hits", **named, **changed})


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (None, "its score gives a NoneType\n  accepted: a list of Score"),
        ({"odd/hits": 0.5}, "its score gives a dict\n"),
        ([hits(), hits()], "two scores of odd/hits\n  accepted: one for each metric"),
        ([hits(item_ids=list("xyx"))], "odd/hits: the item 'x' twice\n  accepted: each item once for a metric"),
        ([hits(item_ids=list("xy"))], LENGTHS),
        ([hits(group_ids=list("pq"))], LENGTHS),
        ([hits(gold=np.ones(2), aggregate="f1")], LENGTHS),
        ([hits(taken_for=list("xy"))], LENGTHS),
        ([hits(item_ids=["x", 1, "z"])], "odd/hits: item_ids holds 1\n  accepted: texts alone"),
        ([hits(item_ids=[(1, 2), (2, 3), (3, 4)])], "odd/hits: item_ids holds (1, 2)\n  accepted: texts alone"),
        ([hits(group_ids=["p", None, "q"])], "odd/hits: group_ids holds None\n"),
        ([hits(item_ids=["x\ud83d", "y", "z"])], "odd/hits: item_ids holds 'x\\ud83d'\n"),
        (
            [hits(group_ids=np.array(["x", "y", "z"]))],
            "odd/hits: group_ids is a ndarray\n  accepted: a list of texts",
        ),
        ([hits(item_ids=set("xyz"))], "odd/hits: item_ids is a set\n  accepted: a list of texts"),
        ([hits(item_ids=np.array(["x", None, "z"]))], "odd/hits: item_ids holds None\n"),
        ([hits(value=None)], "odd/hits is None\n  accepted: a number"),
        ([hits(value=float("nan"))], "odd/hits is nan, but the mean of its items is 0.5"),
        (
            [hits(values=np.ones(3), gold=VALUES, aggregate="pearson")],
            "odd/hits is 0.5, but the pearson of its items",
        ),
        ([hits(value=0.6)], "odd/hits is 0.6, but the mean of its items is 0.5\n  accepted: what score_of_items"),
        (
            [hits(larger_is_better=False)],
            "odd/hits: larger_is_better is False in its score\n  accepted: True, as in the task's metrics",
        ),
        ([hits(aggregate=None)], "odd/hits: values without aggregate\n  accepted: both, or neither"),
        ([hits(values=None)], "odd/hits: aggregate without values\n  accepted: both, or neither"),
        ([hits(aggregate="auc")], "auc compares values with gold, and these items have no gold"),
    ],
)
def test_what_no_verdict_could_take_is_refused(scores: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"odd: {says}")):
        scored(scores)


def test_a_figure_may_be_undefined_and_its_items_of_one_group_or_named_by_numbers() -> None:
    constant = score_of_items("odd/rho", "spearman", list("xyz"), list("xyz"), np.ones(3), VALUES)
    assert np.isnan(constant.value)
    given_back = [
        constant,
        hits(group_ids=list("ppp")),
        hits(metric="odd/ungrouped", group_ids=(), item_ids=np.array(list("xyz"))),
        hits(metric="odd/unnamed", group_ids=None, taken_for=None, item_ids=np.arange(3)),
        hits(metric="odd/numbered", item_ids=[1, 2, 3], group_ids=list(np.arange(3))),
        Score(metric="odd/alone", value=0.3, larger_is_better=False),
    ]
    assert scored(given_back) == given_back


@pytest.mark.parametrize("scale", [1.0, 1e6, -1e6])
def test_a_figure_is_its_items_up_to_rounding(scale: float) -> None:
    """One part in a hundred thousand of the figure, or of 1 where it is smaller."""
    value, slack = 0.5 * scale, 1e-5 * max(1.0, 0.5 * abs(scale))
    for off in (0.9 * slack, -0.9 * slack):
        assert scored([hits(values=VALUES * scale, value=value + off)])
    for off in (1.2 * slack, -1.2 * slack):
        with pytest.raises(ValueError, match="but the mean of its items is"):
            scored([hits(values=VALUES * scale, value=value + off)])
