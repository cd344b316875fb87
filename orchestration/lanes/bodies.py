"""Helpers around a run body in lanes and groups: models that are only scored, costs, and why a job failed."""

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
NOTHING = 1e-9  # a share below this is rounding
CERTAIN = (CorpusError, StudyError, TrainerError)  # errors that recur until a person changes something


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a job failed. final: it would fail the same way again. message: one line, more when final.

    apart: by run id, the problems of runs that failed for a reason of their own.
    """

    message: str
    traceback: str
    final: bool
    apart: Mapping[str, Problem] = field(default_factory=dict)

    def of(self, run_id: str) -> Problem:
        """Why this run of the job failed."""
        return self.apart.get(run_id, self)


def metered(results: Iterator[Result], meter: Meter) -> Iterator[Result]:
    """Add to each result the cost since the result before; runs trained together share their training's cost."""
    shared: Mapping[str, float] = {}  # the cost of a common training
    left = 0.0  # the fraction of it that is not yet assigned to a run
    for result in results:
        cost = meter.take()
        if isinstance(result, Trained) and result.share < 1:
            if left < NOTHING:
                shared, left, cost = cost, 1.0, {}
            left -= result.share
            cost = added(part_of(shared, result.share), cost)
        yield replace(result, cost=cost)


def billed(results: Iterator[Result], ledger: Ledger) -> Iterator[tuple[Result, bool]]:
    """Yield each result, and whether the ledger lacks it; a run may have trained again only to be scored.

    The cost of a result that the ledger holds is added to the run's next new result, so that it is recorded.
    """
    unbilled: dict[str, Mapping[str, float]] = {}  # by run
    for result in results:
        cost = added(result.cost, unbilled.pop(result.run.id, {}))
        is_new = not ledger.has(result.entry)
        if not is_new:
            unbilled[result.run.id] = cost
        yield replace(result, cost=cost), is_new


def with_meter(world: World, meter: Meter) -> World:
    """The world with this meter counting its cost."""
    return replace(world, spent=meter.add, so_far=meter.so_far, go_on=meter.go_on)


def with_models(job: Job, ledger: Ledger) -> tuple[Job, Mapping[str, Exception]]:
    """The job with the folders of models that the ledger holds, whose runs are then only scored.

    Runs whose model is damaged are left out, and their errors are returned by id, or raised if no run is left.
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
    """The Problem of an error.

    Errors for people, and ValueErrors of our own code, come of settings or data and are final. Their whole message
    is kept, since its second line says what is accepted.
    """
    certain = isinstance(error, CERTAIN) and not isinstance(error, StoreAway)
    final = certain or (type(error) is ValueError and _raised_by(error) in OURS)
    lines = f"{type(error).__name__}: {error}".strip().splitlines()
    return Problem(
        message="\n".join(lines if final else lines[:1]),
        traceback="".join(traceback.format_exception(error)),
        final=final,
        apart={run_id: problem(own) for run_id, own in error.errors.items()}
        if isinstance(error, RunsFailed)
        else {},
    )


def _raised_by(error: Exception) -> str:
    """The package whose code raised the error; a library's ValueError may come from a half-written file."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")).partition(".")[0] if frames else ""
