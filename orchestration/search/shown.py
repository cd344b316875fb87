"""What a person reads of a search: a line for every seed while it runs, and a table in the end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from orchestration.lanes import events
from orchestration.lanes.progress import duration
from orchestration.search.confirm import confirmation
from orchestration.study.errors import StudyError
from orchestration.study.names import typed
from orchestration.study.run import on

if TYPE_CHECKING:
    from orchestration.lanes.events import Event
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.standings import Standings
    from orchestration.search.trials import Searched, Selection, Trial
    from orchestration.study.study import Study

SHOWN = 10  # points of a table
HEARTBEAT_SECONDS = 15.0  # between words on where runs are that take long


class SearchWatch:
    """Turns what happens in a search into lines on stderr: the point, the best so far, spent and left budget."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream, self._began, self._said = stream, 0.0, 0.0

    def event(self, event: Event) -> None:
        """Take one event of a lane."""
        match event:
            case events.Preparing(what=what) | events.Waiting(what=what):
                self._say(what)
            case events.LaneReady():
                self._began = self._began or time.monotonic()
            case events.RunMoved(run=run, progress=at) if time.monotonic() - self._said > HEARTBEAT_SECONDS:
                self._say(f"{run.label}: step {at.step} of {at.steps}")
            case events.RunFailed(run=run, message=message, retrying=retrying):
                again = "; trying again" if retrying else ""
                self._say(f"{run.label}: {message.splitlines()[0]}{again}")

    def changed(self, board: Standings, trial: Trial, words: str) -> None:
        """A point got a score or failed at a seed, or, with words, is out."""
        stands = words or mean_words(trial)
        best = board.best
        leader = f"best {best.mean():.4f} (point {best.number})" if best else "no best yet"
        self._say(f"{_name(trial)}  {stands}   [{leader}  {self._budget(board)}]")

    def _budget(self, board: Standings) -> str:
        """Runs spent, and the time for all that may still come at the rate of this session."""
        spent, budget = len(board.asked), board.selection.budget
        here, elapsed = board.executed, time.monotonic() - (self._began or time.monotonic())
        left = f", at most {duration(elapsed * (budget - spent) / here)} left" if here else ""
        return f"{spent} of {budget} runs spent{left}"

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)
        self._said = time.monotonic()


def mean_words(trial: Trial) -> str:
    """Mean, spread and count of the seeds so far, and what failed."""
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
    """What was searched and at which cost, in one line."""
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
    """That a search has no point yet, where the ledger holds others of the study. before: of arms before this."""
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


def next_step(study: Study, found: Sequence[Searched]) -> str:
    """What a person can do with searches that have ended: confirm them, or why not."""
    try:
        confirmation(study, found)
    except StudyError as error:
        return str(error)
    return f"next    {typed('confirm', study.path)}"


def ranked(searched: Searched) -> list[Trial]:
    """Points not given up first, then those with more seeds, then by what they reached of the first objective."""
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
