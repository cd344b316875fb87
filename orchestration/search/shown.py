"""Shows a search to a person: a line for every seed while it runs, and a table at its end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from orchestration.lanes import events
from orchestration.lanes.progress import duration
from orchestration.ledger.place import at
from orchestration.search.confirm import confirmation
from orchestration.study.errors import StudyError
from orchestration.study.names import typed
from orchestration.study.run import on

if TYPE_CHECKING:
    from orchestration.lanes.events import Event
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.standings import Standings
    from orchestration.search.trials import Searched, Selection, Trial
    from orchestration.study.run import Run
    from orchestration.study.study import Study

SHOWN = 10  # the most points in a table
HEARTBEAT_SECONDS = 15.0  # between lines on the progress of long runs


class SearchWatch:
    """Writes the events of a search as lines on stderr: the point, the best so far, spent and left budget."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream, self._began, self._last_line = stream, 0.0, 0.0
        self._told_of_late_looks = False

    def event(self, event: Event) -> None:
        """Write a line for an event of a lane, if a person should see it."""
        if isinstance(event, events.RunMoved) and event.progress.steps and not self._told_of_late_looks:
            self._tell_of_late_looks(event.run, event.progress.steps)
        match event:
            case events.Preparing(what=what) | events.Waiting(what=what):
                self._say(what)
            case events.LaneReady():
                self._began = self._began or time.monotonic()
            case events.RunMoved(run=run, progress=at) if time.monotonic() - self._last_line > HEARTBEAT_SECONDS:
                self._say(f"{run.label}: {at.doing or f'step {at.step} of {at.steps}'}")
            case events.RunFailed(run=run, message=message, retrying=retrying):
                again = "; trying again" if retrying else ""
                self._say(f"{run.label}: {message.splitlines()[0]}{again}")

    def changed(self, board: Standings, trial: Trial, words: str) -> None:
        """Write a line for a point that has a new score or failure, or that is raced out, as the words say."""
        standing = words or mean_words(trial)
        best = board.best
        leader = f"best {best.mean():.4f} (point {best.number})" if best else "no best yet"
        self._say(f"{_name(trial)}  {standing}   [{leader}  {self._budget(board)}]")

    def _tell_of_late_looks(self, run: Run, steps: int) -> None:
        """Name the looks that a run does not get to. Where it trains by epochs, its rows decide how many steps."""
        late = ", ".join(str(at) for at in run.look_at if at >= steps)
        if late:
            self._say(f"{run.label} has {steps} steps: search.stop_early.at = {late} stops no such run")
            self._told_of_late_looks = True

    def _budget(self, board: Standings) -> str:
        """Runs spent, and an upper bound of the time left at this session's rate."""
        spent, budget = len(board.asked), board.selection.budget
        executed, elapsed = board.executed, time.monotonic() - (self._began or time.monotonic())
        left = f", at most {duration(elapsed * (budget - spent) / executed)} left" if executed else ""
        return f"{spent} of {budget} runs spent{left}"

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)
        self._last_line = time.monotonic()


def mean_words(trial: Trial) -> str:
    """The mean, spread and number of seeds so far, and which seeds failed or were stopped."""
    seeds = f"over {len(trial.scores)} seed{'s' if len(trial.scores) != 1 else ''}"
    spread = "" if math.isnan(trial.sd()) else f" ± {trial.sd():.4f}"
    mean = f"{trial.mean():.4f}{spread} {seeds}" if trial.scores else "no score"
    stopped = (f", seed {seed} stopped at step {at}: {score:.4f}" for seed, (at, score) in trial.stopped.items())
    return mean + "".join((*(f", seed {seed} failed: {why}" for seed, why in trial.failed.items()), *stopped))


def table(searched: Searched) -> str:
    """The best points, and the arm itself, as text."""
    selection, best = searched.selection, searched.best
    shown = ranked(searched)[:SHOWN]
    shown += [trial for trial in searched.trials[:1] if trial not in shown]
    names = [dimension.name for dimension in selection.space]
    head = ["point", *(o.metric for o in selection.objectives), "sd", "seeds", "failed", "stopped", *names, ""]
    marks = {best.number: "best"} if best else {}
    marks = {0: "the arm itself"} | marks | ({0: "best: the arm itself"} if best and best.number == 0 else {})
    front = {trial.number for trial in searched.front} if len(selection.objectives) > 1 else set()
    rows = [
        [
            f"{trial.number}{'*' if trial.number in front else ''}",
            *(_number(trial.mean(index)) for index in range(len(selection.objectives))),
            _number(trial.sd()),
            str(len(trial.scores)),
            str(len(trial.failed)),
            " ".join(f"at {at}" for at, _ in trial.stopped.values()) or "-",
            *(_value(trial.point.get(name, "-")) for name in names),
            marks.get(trial.number, ""),
        ]
        for trial in shown
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
    hidden = len(searched.trials) - len(shown)
    notes = [f"and {hidden} points more"] if hidden > 0 else []
    notes += ["* no other point is better in every objective"] if front else []
    return "\n".join([summary(searched), *lines, *notes])


def summary(searched: Searched) -> str:
    """One line: the arm, objectives and seeds of a search, and its points and runs."""
    selection = searched.selection
    modes = ", ".join(f"{o.metric} ({o.mode})" for o in selection.objectives)
    seeds = " ".join(map(str, selection.seeds))
    runs = f"{searched.spent} of {selection.budget} runs"
    if searched.spent > selection.budget:
        more = searched.spent - selection.budget
        runs = f"{searched.spent} runs, {more} of them beyond what the study asks for now"
    spent = f"{len(searched.trials)} points, {runs}"
    what = f"{selection.arm}{on(selection.backbone)}"
    return f"{what}: {modes} over seeds {seeds}; {selection.search.sampler}, {spent}"


def begun_anew(selection: Selection, ledger: Ledger, before: Sequence[Searched]) -> list[str]:
    """A line if a search has no point yet, but the ledger has other searches of the study. before: known ones."""
    study, own = selection.study.name, {selection.id, *(one.selection.id for one in before)}
    if selection.points(ledger).suggested():
        return []
    others = (ledger.points(study, other) for other in ledger.searches(study) if other not in own)
    points = sum(len(other.suggested()) for other in others)
    if not points:
        return []
    return [
        f"a new search of {selection.arm}: the {points} points of {study} in the ledger are of another space, "
        "arm, sampler, data, precision or seeds; they are kept, and a run that both need is not done again"
    ]


def next_step(study: Study, found: Sequence[Searched], ledger: str, tracked: Sequence[str] = ()) -> str:
    """The next command after searches that have ended: confirm, or why there is nothing to confirm.

    tracked: the words for the MLflow that was asked for (`at_mlflow`).
    """
    try:
        confirmation(study, found)
    except StudyError as error:
        return str(error)
    return f"next    {typed('confirm', study.path, *at(ledger), *tracked)}"


def ranked(searched: Searched) -> list[Trial]:
    """Points that were not given up first, then those with more seeds, then by the first objective."""
    sign = searched.selection.signs[0]

    def key(trial: Trial) -> tuple[Any, ...]:
        reached = trial.reached()
        worth = -math.inf if math.isnan(reached) else sign * reached
        return trial.given_up, -len(trial.scores), -worth, trial.number

    return sorted(searched.trials, key=key)


def as_json(searched: Searched) -> dict[str, Any]:
    """The whole table as plain data."""
    selection, best = searched.selection, searched.best
    return {
        "arm": selection.arm,
        "backbone": selection.backbone,
        "search": selection.id,
        "objectives": [{"metric": o.metric, "mode": o.mode} for o in selection.objectives],
        "seeds": list(selection.seeds),
        "spent": searched.spent,
        "budget": selection.budget,
        "best": None if best is None else best.number,
        "points": [_plain(trial) for trial in searched.trials],
    }


def _plain(trial: Trial) -> Mapping[str, Any]:
    scores = {str(seed): list(values) for seed, values in trial.scores.items()}
    failed = {str(seed): why for seed, why in trial.failed.items()}
    stopped = {str(seed): {"step": at, "score": score} for seed, (at, score) in trial.stopped.items()}
    return {
        "number": trial.number,
        "point": dict(trial.point),
        "scores": scores,
        "failed": failed,
        "stopped": stopped,
    }


def _name(trial: Trial) -> str:
    settings = " ".join(f"{name}={_value(value)}" for name, value in trial.point.items())
    return f"point {trial.number} ({settings})"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
