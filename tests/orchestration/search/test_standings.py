"""Decisions of a search, without lanes: runs are finished by hand, in any order."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.search.requests import Report
from orchestration.search.standings import Standings
from orchestration.search.trials import Selection, searched
from orchestration.study.blocks import Objective, StopEarly
from orchestration.study.run import Run
from tests.counting_store import counting_store, requests
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


def finished(ledger: Ledger, run: Run, score: float, **others: float) -> Run:
    """A run of a lane, with one look at step 2. others: those at other steps, as step_1."""
    looks = {1: others.get("step_1"), 2: score, 3: others.get("step_3")}
    curve = [
        Progress(step=step, steps=10, loss=0.5, figures={MRR: seen, AUC: seen})
        for step, seen in looks.items()
        if seen is not None
    ]
    scores: list[Score] = worth(run)
    finish(ledger, run, scores, curve=curve)
    return run


def trained(board: Standings, ledger: Ledger, looks: Mapping[int, float]) -> None:
    """The points' first runs, trained and decided on one after another."""
    for number, score in looks.items():
        ordered = board.order(number, 0)
        assert isinstance(ordered, Run)
        board.scored(finished(ledger, ordered, score), number)
        assert board.trials[number].seeds == (100,)


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
    reports = [again.order(number, 0) for number in range(5)]
    assert reports[4] == {"objective0": pytest.approx(0.15), "seeds": 0, "given_up": True}  # where it was stopped
    assert tuple(again.trials[:5]) == before.trials
    trained(again, ledger, {5: 0.19, 6: 0.2})  # the medians of those before: 0.2 and 0.195
    assert [trial.number for trial in again.trials if trial.stopped] == [4, 5]


def test_another_point_of_a_stopped_run_has_its_answer(chosen: Selection, ledger: Ledger) -> None:
    """It asks for no run, nor does a third one after a kill, though by what came since the run would go on."""

    def board_with(same: int) -> Standings:
        board = board_of(chosen, ledger, 4)
        for number in range(4, 4 + same):
            board.suggest(number, {"temperature": 0.05, "hn_margin": 0.15})
        return board

    board = board_with(2)
    trained(board, ledger, {0: 0.3, 1: 0.4})
    run = board.order(4, 0)
    assert isinstance(run, Run)
    answer = board.looked(run, 4, 2, 0.2)
    trained(board, ledger, {2: 0.1, 3: 0.1})
    assert board.order(5, 0) == answer == {"objective0": pytest.approx(0.2), "seeds": 0, "given_up": True}
    again = board_with(3)
    assert [again.order(number, 0) for number in (4, 5, 6)] == [answer] * 3
    assert [trial.stopped for trial in searched(chosen, ledger).trials[4:]] == [{100: (2, 0.2)}] * 3


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


def test_looks_of_another_search_at_the_same_run_do_not_count(chosen: Selection, ledger: Ledger) -> None:
    """Which looked at other steps: here a run of 0.16 at step 2 is compared with 0.1 and 0.2 there."""
    board = board_of(chosen, ledger, 3)
    for number, score in ((0, 0.1), (1, 0.2)):
        run = board.run(number, 0)
        finished(ledger, run, score, step_1=0.9, step_3=0.9)
        assert isinstance(board.order(number, 0), dict)
    trained(board, ledger, {2: 0.16})
    assert not board.trials[2].stopped


def test_looks_are_compared_at_the_same_steps(tmp_path: Path, ledger: Ledger) -> None:
    """Two runs of another search were looked at after step 2 alone: no run is held against that after step 1."""
    early = replace(EARLY, at=(1, 2))
    board = board_of(selection(tmp_path, stop_early=early, race=0.0), ledger, 5)
    for number in (0, 1):
        finished(ledger, board.run(number, 0), 0.3)
        assert isinstance(board.order(number, 0), dict)
    for number, first in ((2, 0.1), (3, 0.2), (4, 0.05)):
        run = board.order(number, 0)
        assert isinstance(run, Run)
        assert (board.looked(run, number, 1, first) is None) == (number < 4)


@pytest.mark.parametrize("rule", ["median", "asha"])
def test_a_look_without_a_figure_decides_nothing(
    rule: Literal["median", "asha"], tmp_path: Path, ledger: Ledger
) -> None:
    """The driver passes none on while the run is under way; it is none when the run has ended, either."""
    early = StopEarly(rule=rule, at=(1, 2), least=2)
    board = board_of(selection(tmp_path, stop_early=early, race=0.0), ledger, 3)
    for number, (first, second) in enumerate([(0.1, 0.2), (0.2, 0.3), (math.nan, 0.9)]):
        run = board.order(number, 0)
        assert isinstance(run, Run)
        for step, score in ((1, first), (2, second)):
            if not math.isnan(score):
                assert board.looked(run, number, step, score) is None
        board.scored(finished(ledger, run, second, step_1=first), number)
    assert not any(trial.stopped for trial in board.trials)


class Race:
    """A search of three selection seeds whose runs are scored by hand; scores are negated where less is better."""

    def __init__(self, folder: Path, mode: Literal["max", "min"], **changes: Any) -> None:
        objective = Objective(metric=MRR, mode=mode)
        self.chosen = selection(folder, objective=objective, **changes)
        self.ledger, self.sign = Ledger(folder / "ledger"), 1 if mode == "max" else -1
        self.told: list[tuple[int, str]] = []
        self.board = Standings(
            self.chosen, self.ledger, lambda board, trial, words: self.told.append((trial.number, words))
        )
        for number in range(3):
            self.board.suggest(number, {"temperature": 0.05, "hn_margin": 0.1 + number / 100})

    def ordered(self, number: int, place: int) -> Run:
        run = self.board.order(number, place)
        assert isinstance(run, Run)
        return run

    def run(self, number: int, scores: Sequence[float]) -> list[Report]:
        """Run a point's next seeds. -> what its trial is told after each"""
        reports = []
        for score in scores:
            run = self.ordered(number, len(self.board.trials[number].scores))
            finish(self.ledger, run, [Score(metric=MRR, value=self.sign * score)])
            reports.append(self.board.scored(run, number))
        return reports


MODES = pytest.mark.parametrize("mode", ["max", "min"])


@MODES
def test_a_point_that_lags_behind_the_best_gets_no_further_seed(
    tmp_path: Path, mode: Literal["max", "min"]
) -> None:
    """All points share the luck of a seed, 0.3 and -0.2; points 0 and 1 differ by as much as their noise."""
    race = Race(tmp_path, mode)
    board = race.board
    race.run(2, [0.2])
    race.run(0, [0.5, 0.81])
    assert [board.goes_on(number) for number in range(3)] == [True, True, True]  # none has all seeds: none leads
    race.run(0, [0.3])
    race.run(1, [0.51, 0.8])
    assert [board.goes_on(number) for number in range(3)] == [False, True, False]
    ((number, words),) = [(number, words) for number, words in race.told if words]
    assert number == 2
    assert words.startswith("out: its chance to end above point 0 is 0.0")
    assert not board.settled  # point 1 may go on
    reports = race.run(1, [0.32])
    assert reports == [{"objective0": pytest.approx(race.sign * 1.63 / 3), "seeds": 3, "given_up": False}]
    assert board.best is board.trials[1]
    assert board.settled
    assert race.told[-1] == (1, "")


def test_without_a_race_every_point_gets_all_seeds(tmp_path: Path) -> None:
    race = Race(tmp_path, "max", race=0.0)
    race.run(0, [0.5, 0.81, 0.3])
    race.run(1, [0.51, 0.8])
    race.run(2, [0.2])
    assert [race.board.goes_on(number) for number in range(3)] == [False, True, True]
    assert not race.board.settled


@MODES
def test_a_failed_point_is_told_as_the_worst_so_far(tmp_path: Path, mode: Literal["max", "min"]) -> None:
    """The sampler is to stay away from it; before the first score nothing is known. The search has not settled."""
    race = Race(tmp_path, mode)
    first = race.board.failed(race.ordered(0, 0), 0, "loss is nan\nat step 3")
    assert first == {"seeds": 0, "given_up": True}
    assert race.board.trials[0].failed == {100: "loss is nan"}
    race.run(1, [0.5, 0.2, 0.4])
    later = race.board.failed(race.ordered(2, 0), 2, "lost")
    assert later == {"objective0": race.sign * 0.2, "seeds": 0, "given_up": True}
    assert not any(map(race.board.goes_on, range(3)))
    assert not race.board.settled  # what failed is tried again


def test_a_budget_counts_each_run_once(tmp_path: Path) -> None:
    """A run that was asked for is answered again; the first one beyond the budget ends the search."""
    race = Race(tmp_path, "max", budget=3, race=0.0)
    board = race.board
    race.run(0, [0.5, 0.6])
    race.run(1, [0.4])
    assert not board.over.is_set()
    assert not board.settled
    assert board.order(1, 0) == {"objective0": pytest.approx(0.4), "seeds": 1, "given_up": False}
    assert board.order(1, 1) is None
    assert board.over.is_set()
    assert board.settled
    assert (len(board.asked), board.executed) == (3, 3)


def test_a_point_whose_settings_are_refused_is_not_kept(tmp_path: Path) -> None:
    """Kept in the ledger, it would be suggested whenever the search goes on."""
    race = Race(tmp_path, "max")
    with pytest.raises(ValueError, match="layers"):
        race.board.suggest(3, {"layers": 2})
    assert len(race.board.points.suggested()) == len(race.board.trials) == 3


def test_what_was_read_ahead_of_a_finished_run_is_not_read_again(chosen: Selection) -> None:
    """Requests to a remote ledger take their time in the thread in which lanes get their runs.

    Of a run that was partly scored before, lanes tell by the tasks that it lacked.
    """
    with counting_store() as url:
        ledger = Ledger(url)
        board = board_of(chosen, ledger, 2)
        runs = [board.order(number, 0) for number in range(2)]
        for run in runs:
            assert isinstance(run, Run)
            finished(ledger, run, 0.1)
            board.read(replace(run, tasks={}))
        with requests() as asked:
            reports = [board.scored(run, number) for number, run in enumerate(runs) if isinstance(run, Run)]
        assert asked == []
        assert [report["objective0"] for report in reports] == [
            board.trials[number].scores[chosen.seeds[0]][0] for number in range(2)
        ]
        with requests() as asked:
            table = searched(chosen, ledger)
        assert [trial.scores for trial in table.trials] == [trial.scores for trial in board.trials]
        assert {one[2] for one in asked if "/.results/" in one[1]}.isdisjoint({threading.current_thread()})
