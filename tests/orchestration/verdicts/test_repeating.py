"""What two executions of one run are told to differ by: scores and items, by the figure that differs most."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.repeats import Reproduction
from orchestration.verdicts.repeating import compared
from tests.results import finish, run_in

ITEMS = np.array([0.25, 0.5, 0.75])
MEAN = Score(metric="m/mean", value=0.5, aggregate="mean", item_ids=list("abc"), values=ITEMS)
OTHER = Score(metric="m/other", value=0.7)
UNDEFINED = replace(OTHER, value=math.nan)


def of_items(*values: float) -> Score:
    return replace(MEAN, value=float(np.mean(values)), values=np.array(values))


@pytest.mark.parametrize(
    ("first", "second", "outcome", "metric", "difference"),
    [
        ([MEAN, OTHER], [MEAN, OTHER], "same bits", "", 0.0),
        ([MEAN, UNDEFINED], [MEAN, UNDEFINED], "same bits", "", 0.0),
        ([MEAN, OTHER], [MEAN, UNDEFINED], "different", "m/other", None),
        ([MEAN, UNDEFINED], [MEAN, OTHER], "different", "m/other", None),
        ([], [], "same bits", "", 0.0),
        ([MEAN, OTHER], [MEAN], "different", "m/other", None),
        ([MEAN], [MEAN, OTHER], "different", "m/other", None),
        ([MEAN, OTHER], [MEAN, replace(OTHER, value=0.7 - 5e-7)], "same to 1e-6", "m/other", 5e-7),
        ([MEAN, OTHER], [of_items(0.25, 0.5, 0.76), replace(OTHER, value=0.75)], "different", "m/other", 0.05),
        # items that move against each other, under one and the same mean
        ([MEAN, OTHER], [of_items(0.5, 0.25, 0.75), OTHER], "different", "m/mean", 0.25),
        ([MEAN], [replace(MEAN, item_ids=list("abx"))], "different", "m/mean", None),
        # the order in which items are written is no difference
        ([MEAN], [replace(MEAN, item_ids=list("cba"), values=ITEMS[::-1].copy())], "same bits", "", 0.0),
    ],
)
def test_the_figure_that_differs_most_is_told(
    first: list[Score], second: list[Score], outcome: str, metric: str, difference: float | None, tmp_path: Path
) -> None:
    run, ledgers = run_in(tmp_path, 3), (Ledger(tmp_path / "first"), Ledger(tmp_path / "second"))
    for ledger, scores in zip(ledgers, (first, second), strict=True):
        finish(ledger, run, scores)
    found = compared(run, *ledgers)
    assert (found.outcome, found.metric) == (outcome, metric)
    assert found.difference == pytest.approx(difference)
    assert (found.run, found.label) == (run.id, run.label)
    ledgers[0].keep_repeat(found)
    assert ledgers[0].repeats([run.id]) == [found]


def test_of_a_figure_that_one_execution_lacks_no_number_is_told(tmp_path: Path) -> None:
    """JSON has no infinite number: other programs could read neither the output nor the note."""
    run, ledgers = run_in(tmp_path, 3), (Ledger(tmp_path / "first"), Ledger(tmp_path / "second"))
    for ledger, scores in zip(ledgers, ([MEAN, OTHER], [MEAN]), strict=True):
        finish(ledger, run, scores)
    found = compared(run, *ledgers)
    assert "is NOT reproducible: only one of the two has m/other, or one of its items; equal seeds" in found.words
    assert json.loads(json.dumps(asdict(found), allow_nan=False))["difference"] is None


def test_a_note_of_before_with_an_infinite_difference_is_read_as_it_was_printed(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path / "ledger"), run_in(tmp_path, 3)
    before = Reproduction(run=run.id, label=run.label, outcome="different", metric="m/other", difference=math.inf)
    ledger.keep_repeat(before)
    assert ledger.repeats([run.id]) == [before]
    assert "m/other differs by inf" in before.words  # as the passports of that time hold it
