"""The state of a running search: its points, their seeds, the best so far, and which points may go on."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluators.tasks.figures import mean_of
from orchestration.search import stopping
from orchestration.search.asking import objective_name
from orchestration.search.racing import chance_to_win
from orchestration.search.requests import Report
from orchestration.search.trials import Selection, Trial, best_of, with_score, with_stop
from orchestration.study.run import Run

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from search_spaces.space import Point


class _Scored(NamedTuple):
    """What the ledger holds of a finished run. curve: its development scores, as (step, score)."""

    record: Record
    curve: list[tuple[int, float]]


class Standings:
    """The trials of a running search. Tune's thread suggests and races points, the driver's adds scores.

    on_change is called for each trial that has another seed, and for each that is raced out. over: set when no
    more points are wanted.
    """

    def __init__(
        self, selection: Selection, ledger: Ledger, on_change: Callable[[Standings, Trial, str], None]
    ) -> None:
        self.selection, self.ledger, self._on_change = selection, ledger, on_change
        self.trials: list[Trial] = []
        self.asked: dict[str, Run] = {}
        self.executed = 0  # runs given to lanes since this call started
        self.over = threading.Event()
        self._budget_spent, self._run_lost, self._raced_out = False, False, set[int]()
        self.points = selection.points(ledger)
        self._stopped = self.points.stopped()
        self._stops: dict[str, Mapping[int, float]] = {}  # run that was stopped -> step -> score
        self._looks: dict[int, dict[int, dict[int, float]]] = {}  # seed -> number of the point -> step -> score
        self._read: dict[str, _Scored] = {}  # what `read` has read of runs that are not scored yet
        self._lock = threading.Lock()

    # Tune's side

    def suggest(self, number: int, point: Point) -> None:
        """Add a new point, and keep it in the ledger before any of its runs."""
        self.selection.run(number, point, self.selection.seeds[0])  # ValueError if the settings refuse it
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
            if not least or best is None:
                return True
            chance = chance_to_win(self._scores(), number, best.number)
        if chance >= least:
            return True
        self._raced_out.add(number)
        self._on_change(self, trial, f"out: its chance to end above point {best.number} is {chance:.3f}")
        return False

    # The driver's side

    def order(self, number: int, place: int) -> Run | Report | None:
        """The run of a point's seed; the point's report if the ledger has the run; None beyond the budget."""
        run, seed = self.run(number, place), self.selection.seeds[place]
        if run.id not in self.asked and len(self.asked) >= self.selection.budget:
            self._budget_spent = True
            self.over.set()
            return None
        self.asked[run.id] = run
        looks = self._stopped.get((number, seed))
        if looks is not None:
            return self._end_at(run.id, number, seed, looks)
        if self.ledger.holds(run):
            return self._accept(run, number, self._scores_of(run))
        if run.id in self._stops:  # for another point, which is the same run: it would come to the same step again
            return self._stop(run.id, number, seed, self._stops[run.id])
        self.executed += 1
        return run

    def run(self, number: int, place: int) -> Run:
        return self.selection.run(number, self.trials[number].point, self.selection.seeds[place])

    def scored(self, run: Run, number: int) -> Report:
        """Record the scores of a finished run; returns the point's report.

        The run may have ended before its development scores were judged. A score that would have stopped it stops
        the point now, so that a search does not depend on the order of events.
        """
        scored = self._read.pop(run.id, None) or self._scores_of(run)
        for step, score in scored.curve:
            if (report := self.looked(run, number, step, score)) is not None:
                return report
        return self._accept(run, number, scored)

    def read(self, run: Run) -> None:
        """Read ahead, in another thread, what `scored` needs of a finished run: lanes wait for the driver's."""
        self._read[run.id] = self._scores_of(self.asked[run.id])  # a lane gets the tasks that the ledger lacks

    def looked(self, run: Run, number: int, step: int, score: float) -> Report | None:
        """Record a development score of a run under way; the point's report if that stops the run, else None."""
        rule, seed = self.selection.search.stop_early, run.seed
        assert rule is not None
        assert seed is not None
        runs = self._looks.setdefault(seed, {})
        mine, sign = runs.setdefault(number, {}), self.selection.signs[0]
        if step in mine:
            return None
        mine[step] = score
        curve = [sign * value for value in mine.values()]
        others = [  # a finished run that another search had may have been looked at after other steps
            [sign * looks[at] for at in mine]
            for looks in runs.values()
            if looks is not mine and mine.keys() <= looks.keys()
        ]
        if stopping.goes_on(rule, curve, others):
            return None
        return self._stop(run.id, number, seed, mine)

    def _stop(self, run_id: str, number: int, seed: int, looks: Mapping[int, float]) -> Report:
        """Keep in the ledger that the point's run was stopped at the last of these looks."""
        self.points.stop(number, seed, looks)
        return self._end_at(run_id, number, seed, looks)

    def _end_at(self, run_id: str, number: int, seed: int, looks: Mapping[int, float]) -> Report:
        self._stops[run_id] = looks
        self._looks.setdefault(seed, {})[number] = dict(looks)
        return self._changed(with_stop(self.trials[number], seed, looks))

    def _accept(self, run: Run, number: int, scored: _Scored) -> Report:
        """Record the scores of a finished run, and its development scores to compare others with; never stop it.

        A run in the ledger without a stop was accepted when it ended, and stays so: points answer in another
        order each time, which could stop others. A run that ended just before a kill is accepted too, as a stop
        would save no step.
        """
        assert run.seed is not None
        self._looks.setdefault(run.seed, {})[number] = dict(scored.curve)
        return self._changed(with_score(self.trials[number], self.selection, scored.record))

    def failed(self, run: Run, number: int, why: str) -> Report:
        """Record a run that was given up; its point gets no more runs, unless the search is called again."""
        self._run_lost = True
        trial = self.trials[number]
        assert run.seed is not None
        return self._changed(replace(trial, failed={**trial.failed, run.seed: why.splitlines()[0]}))

    @property
    def settled(self) -> bool:
        """Whether the points so far need no more runs, even if the search is called again."""
        seeds = len(self.selection.seeds)
        done = (one.given_up or len(one.scores) == seeds or one.number in self._raced_out for one in self.trials)
        return not self._run_lost and (self._budget_spent or all(done))

    @property
    def best(self) -> Trial | None:
        return best_of(self.trials, self.selection.signs)

    def _changed(self, trial: Trial) -> Report:
        with self._lock:
            self.trials[trial.number] = trial
        self._on_change(self, trial, "")
        values = trial.reached if not trial.failed else self._worst
        means = {objective_name(i): values(i) for i in range(len(self.selection.objectives))}
        known = {name: value for name, value in means.items() if math.isfinite(value)}
        return {**known, "seeds": len(trial.scores), "given_up": trial.given_up}

    def _scores_of(self, run: Run) -> _Scored:
        return _Scored(self.ledger.record(run), self._curve(run))

    def _curve(self, run: Run) -> list[tuple[int, float]]:
        """A finished run's development scores: (step, score), where there is one; empty without early stopping."""
        if not run.look_at:
            return []
        figures = self.selection.study.figures_of(self.selection.objectives[0].metric)
        looks: dict[int, dict[str, float]] = {}  # step -> figure -> value
        for row in self.ledger.curve(run).to_pylist():
            if row["name"] in figures and row["step"] in run.look_at:
                looks.setdefault(row["step"], {})[row["name"]] = row["value"]
        scores = [(step, mean_of(seen, figures)) for step, seen in looks.items()]
        return [(step, score) for step, score in scores if not math.isnan(score)]

    def _worst(self, objective: int) -> float:
        """The worst score of any run so far, as the sampler's value of a failed point; nan before the first."""
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
