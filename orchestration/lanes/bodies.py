"""What surrounds a run body wherever it executes: the models it may score alone, what it costs, why it failed."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.store.errors import CorpusError
from orchestration.ledger.away import StoreAway
from orchestration.ledger.notes import LedgerError
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Result, RunsFailed, Trained
from trainers.engine.meter import Meter, added, part_of
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from trainers.engine.world import World

OURS = ("corpora", "evaluators", "orchestration", "trainers")
NOTHING = 1e-9  # of a share, but for rounding
CERTAIN = (CorpusError, StudyError, TrainerError)  # they say what a person must change


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a job ended early. final: it would end the same way again. message: one line, more when final.

    apart: by id, why runs of the job failed that did so for a reason of their own.
    """

    message: str
    traceback: str
    final: bool
    apart: Mapping[str, Problem] = field(default_factory=dict)

    def of(self, run_id: str) -> Problem:
        """Why this run of the job failed."""
        return self.apart.get(run_id, self)


def metered(results: Iterator[Result], meter: Meter) -> Iterator[Result]:
    """Each result with what it cost since the one before; runs trained at once share the cost of that."""
    of_all: Mapping[str, float] = {}  # the cost that is being shared
    left = 0.0  # the part of it that is still due
    for result in results:
        cost = meter.take()
        if isinstance(result, Trained) and result.share < 1:
            if left < NOTHING:
                of_all, left, cost = cost, 1.0, {}
            left -= result.share
            cost = added(part_of(of_all, result.share), cost)
        yield replace(result, cost=cost)


def billed(results: Iterator[Result], ledger: Ledger) -> Iterator[tuple[Result, bool]]:
    """Each result, and whether it is new to the ledger: a run may have had to train again, for its scores alone.

    The cost of a result that is not new goes to the next new one of its run, or no entry would hold it.
    """
    unbilled: dict[str, Mapping[str, float]] = {}  # by run
    for result in results:
        cost = added(result.cost, unbilled.pop(result.run.id, {}))
        is_new = not ledger.has(result.entry)
        if not is_new:
            unbilled[result.run.id] = cost
        yield replace(result, cost=cost), is_new


def with_meter(world: World, meter: Meter) -> World:
    """The world with what is spent in it counted."""
    return replace(world, spent=meter.add, so_far=meter.so_far, go_on=meter.go_on)


def with_models(job: Job, ledger: Ledger) -> tuple[Job, Mapping[str, Exception]]:
    """The job with the folders of the models that the ledger holds of its runs: those are only scored.

    Runs whose model is damaged are left out of it, and their errors returned by id; raised, where no run is left.
    """
    models: dict[str, Path] = {}
    damaged: dict[str, Exception] = {}
    for run in job.runs:
        try:
            folder = ledger.model(run) if ledger.trained(run) else None
        except LedgerError as error:
            damaged[run.id] = error
        else:
            if folder is not None:
                models[run.id] = folder
    whole = tuple(run for run in job.runs if run.id not in damaged)
    if not whole:
        raise RunsFailed(damaged) if len(damaged) > 1 else damaged[job.runs[0].id]
    return replace(job, runs=whole, models=models), damaged


def problem(error: Exception) -> Problem:
    """What a person and the driver want to know of an error.

    Settings and data that cannot work fail again: errors written for people, and any ValueError of our own code.
    Of those the whole message is kept, since its second line says what is accepted.
    """
    certain = isinstance(error, CERTAIN) and not isinstance(error, StoreAway)
    final = certain or (type(error) is ValueError and _raised_by(error) in OURS)
    lines = f"{type(error).__name__}: {error}".strip().splitlines()
    return Problem(
        message="\n".join(lines if final else lines[:1]),
        traceback="".join(traceback.format_exception(error)),
        final=final,
        apart={run_id: problem(one) for run_id, one in error.errors.items()}
        if isinstance(error, RunsFailed)
        else {},
    )


def _raised_by(error: Exception) -> str:
    """The package whose code raised the error: a library's own ValueError may come of a file half written."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")).partition(".")[0] if frames else ""
