"""Where a running search stands: its points, their seeds, the best so far, and who may go on."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evaluators.tasks.figures import mean_of
from orchestration.search import stopping
from orchestration.search.racing import chance_to_win
from orchestration.search.requests import Report
from orchestration.search.trials import Selection, Trial, best_of, with_score, with_stop
from orchestration.study.run import Run

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from search_spaces.space import Point


def objective_name(index: int) -> str:
    """How an objective is called in a report."""
    return f"objective{index}"


class Standings:
    """The trials of a search as they grow. Tune's thread suggests points and races them, the driver's adds scores.

    on_change is told of every trial that has another seed, and of every one that is raced out. over: no more
    points are wanted.
    """

    def __init__(
        self, selection: Selection, ledger: Ledger, on_change: Callable[[Standings, Trial, str], None]
    ) -> None:
        self.selection, self.ledger, self._on_change = selection, ledger, on_change
        self.trials: list[Trial] = []
        self.asked: set[str] = set()
        self.executed = 0  # runs that lanes did for this search since it was started
        self.over = threading.Event()
        self._spent, self._lost, self._out = False, False, set[int]()  # the budget, a run, points raced out
        self.points = selection.points(ledger)
        self._ended = self.points.stopped()
        self._looks: dict[int, dict[int, dict[int, float]]] = {}  # seed -> number of the point -> step -> score
        self._lock = threading.Lock()

    # Tune's side

    def suggest(self, number: int, point: Point) -> None:
        """Take a new point, and write it down before anything is run for it."""
        self.selection.run(number, point, self.selection.seeds[0])  # ValueError for what the settings refuse
        self.points.suggest(number, point)
        with self._lock:
            assert number == len(self.trials), "points come in order"
            self.trials.append(Trial(number=number, point=point))

    def goes_on(self, number: int) -> bool:
        """Whether the next seed of a point is worth its run."""
        with self._lock:
            trial, best = self.trials[number], self._leader()
            if trial.given_up or len(trial.scores) == len(self.selection.seeds):
                return False
            least = self.selection.search.least_chance
            if not least or best is None or best.number == number:
                return True
            chance = chance_to_win(self._scores(), number, best.number)
        if chance >= least:
            return True
        self._out.add(number)
        self._on_change(self, trial, f"out: its chance to end above point {best.number} is {chance:.3f}")
        return False

    # The driver's side

    def order(self, number: int, place: int) -> Run | Report | None:
        """The run of a point's seed; where the point stands when the ledger has it; None beyond the budget."""
        run, seed = self.run(number, place), self.selection.seeds[place]
        if run.id not in self.asked and len(self.asked) >= self.selection.budget:
            self._spent = True
            self.over.set()
            return None
        self.asked.add(run.id)
        looks = self._ended.get((number, seed))
        if looks is not None:
            self._looks.setdefault(seed, {})[number] = dict(looks)
            return self._grown(with_stop(self.trials[number], seed, looks))
        if self.ledger.holds(run):
            return self._let_through(run, number)
        self.executed += 1
        return run

    def run(self, number: int, place: int) -> Run:
        return self.selection.run(number, self.trials[number].point, self.selection.seeds[place])

    def scored(self, run: Run, number: int) -> Report:
        """Note what a finished run scored; returns where the point stands.

        It may have ended before anybody looked at how it went: what would have stopped it then stops the point
        now, so that a search does not depend on who was faster.
        """
        for step, score in self._curve(run):
            if (report := self.looked(run, number, step, score)) is not None:
                return report
        return self._let_through(run, number)

    def looked(self, run: Run, number: int, step: int, score: float) -> Report | None:
        """Note a run's development score in its middle; where the point stands if that ends the run, else None."""
        rule, seed = self.selection.search.stop_early, run.seed
        assert rule is not None
        assert seed is not None
        runs = self._looks.setdefault(seed, {})
        mine, sign = runs.setdefault(number, {}), self.selection.signs[0]
        if step in mine:
            return None
        mine[step] = score
        curves = {of: [sign * value for value in looks.values()] for of, looks in runs.items()}
        curve = curves.pop(number)
        if stopping.goes_on(rule, curve, list(curves.values())):
            return None
        self.points.stop(number, seed, mine)
        return self._grown(with_stop(self.trials[number], seed, mine))

    def _let_through(self, run: Run, number: int) -> Report:
        """Note what a finished run scored, and its looks for others to be compared with; it is judged no more.

        A run that the ledger has without a stop was let through when it ended, and stays so: which points answer
        first is another matter each time, and would come to other stops. Where a kill came between its end and
        the decision it counts as let through too: to stop it could save no step any more.
        """
        assert run.seed is not None
        self._looks.setdefault(run.seed, {})[number] = dict(self._curve(run))
        return self._grown(with_score(self.trials[number], self.selection, self.ledger, run))

    def failed(self, run: Run, number: int, why: str) -> Report:
        """Note that a run was given up; the point is not tried further, unless the search is called again."""
        self._lost = True
        trial = self.trials[number]
        assert run.seed is not None
        return self._grown(replace(trial, failed={**trial.failed, run.seed: why.splitlines()[0]}))

    @property
    def settled(self) -> bool:
        """Whether of the points so far nothing is left to be run, also if the search is called again."""
        seeds = len(self.selection.seeds)
        done = (one.given_up or len(one.scores) == seeds or one.number in self._out for one in self.trials)
        return not self._lost and (self._spent or all(done))

    @property
    def best(self) -> Trial | None:
        return best_of(self.trials, self.selection.signs)

    def _grown(self, trial: Trial) -> Report:
        with self._lock:
            self.trials[trial.number] = trial
        self._on_change(self, trial, "")
        values = trial.reached if not trial.failed else self._worst
        means = {objective_name(i): values(i) for i in range(len(self.selection.objectives))}
        known = {name: value for name, value in means.items() if math.isfinite(value)}
        return {**known, "seeds": len(trial.scores), "given_up": trial.given_up}

    def _curve(self, run: Run) -> list[tuple[int, float]]:
        """A finished run's development scores by step; none without early stopping."""
        if not run.look_at:
            return []
        figures = self.selection.study.figures_of(self.selection.objectives[0].metric)
        looks: dict[int, dict[str, float]] = {}  # step -> figure -> value
        for row in self.ledger.curve(run).to_pylist():
            if row["name"] in figures and row["step"] in run.look_at:
                looks.setdefault(row["step"], {})[row["name"]] = row["value"]
        return [(step, mean_of(seen, figures)) for step, seen in looks.items()]

    def _worst(self, objective: int) -> float:
        """The worst score of any run so far, nan before the first: what a failed point is worth to the sampler."""
        sign = self.selection.signs[objective]
        seen = [sign * value for trial in self.trials for value in trial.values(objective)]
        return sign * min(seen, default=math.nan)

    def _leader(self) -> Trial | None:
        """The best point that has all seeds."""
        best = self.best
        return best if best is not None and len(best.scores) == len(self.selection.seeds) else None

    def _scores(self) -> np.ndarray:
        """(points, seeds) of the first objective, larger is better; nan where a seed was not run."""
        seeds, sign, rows = self.selection.seeds, self.selection.signs[0], [one.scores for one in self.trials]
        return np.array([[sign * row[seed][0] if seed in row else math.nan for seed in seeds] for row in rows])
