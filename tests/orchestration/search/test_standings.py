"""Decisions of a search that stops early, without lanes: runs are finished by hand, in any order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.search.standings import Standings
from orchestration.search.trials import Selection, searched
from orchestration.study.blocks import StopEarly
from orchestration.study.run import Run
from tests.results import finish
from tests.searching import AUC, MRR, selection, worth
from trainers.engine.world import Progress

EARLY = StopEarly(rule="median", at=(2,), least=2)
LOOKS = {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}  # number of the point -> its score at step 2; each passes those before it


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture(params=[MRR, f"mean({MRR}, {AUC})"])
def chosen(tmp_path: Path, request: pytest.FixtureRequest) -> Selection:
    return selection(tmp_path, metric=request.param, stop_early=EARLY, race=0.0)


def board_of(chosen: Selection, ledger: Ledger, points: int) -> Standings:
    """A search that begins, or goes on, with so many points."""
    board = Standings(chosen, ledger, lambda board, trial, words: None)
    for number in range(points):
        board.suggest(number, {"temperature": 0.05, "hn_margin": 0.1 + number / 100})
    return board


def finished(ledger: Ledger, run: Run, score: float) -> Run:
    """A run of a lane, with one look at step 2."""
    look = Progress(step=2, steps=10, loss=0.5, figures={MRR: score, AUC: score})
    scores: list[Score] = worth(run)
    finish(ledger, run, scores, curve=[look])
    return run


def trained(board: Standings, ledger: Ledger, looks: Mapping[int, float]) -> None:
    """The points' first runs, trained and decided on one after another."""
    for number, score in looks.items():
        ordered = board.order(number, 0)
        assert isinstance(ordered, Run)
        board.scored(finished(ledger, ordered, score), number)


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (2, 3, 0, 1), (0, 1, 2, 3)])
def test_a_run_that_was_let_through_stays_so_whichever_points_answer_first(
    chosen: Selection, ledger: Ledger, order: tuple[int, ...]
) -> None:
    trained(board_of(chosen, ledger, 4), ledger, LOOKS)
    before = searched(chosen, ledger)
    assert not any(trial.stopped for trial in before.trials)
    again = board_of(chosen, ledger, 4)
    for number in order:
        report = again.order(number, 0)
        assert isinstance(report, dict)
        assert not report["given_up"]
    assert tuple(again.trials) == before.trials == searched(chosen, ledger).trials
    assert not ledger.points("margins", chosen.id).stopped()


def test_a_stop_stays_and_new_runs_are_compared_with_all_that_came_before(
    chosen: Selection, ledger: Ledger
) -> None:
    trained(board_of(chosen, ledger, 5), ledger, {**LOOKS, 4: 0.15})
    before = searched(chosen, ledger)
    assert [trial.number for trial in before.trials if trial.stopped] == [4]
    again = board_of(chosen, ledger, 7)
    for number in range(5):
        again.order(number, 0)
    assert tuple(again.trials[:5]) == before.trials
    trained(again, ledger, {5: 0.19, 6: 0.2})  # the medians of those before: 0.2 and 0.195
    assert [trial.number for trial in again.trials if trial.stopped] == [4, 5]


def test_a_run_that_ended_as_the_driver_was_killed_counts_with_its_score(
    chosen: Selection, ledger: Ledger
) -> None:
    """Nobody decided on it; it would have been stopped."""
    first = board_of(chosen, ledger, 3)
    trained(first, ledger, {0: 0.3, 1: 0.4})
    ordered = first.order(2, 0)
    assert isinstance(ordered, Run)
    finished(ledger, ordered, 0.1)
    again = board_of(chosen, ledger, 3)
    for number in (0, 1, 2):
        again.order(number, 0)
    assert again.trials[2].scores
    assert not again.trials[2].stopped
    assert tuple(again.trials) == searched(chosen, ledger).trials
