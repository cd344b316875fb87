"""What happens inside a lane: execute jobs one after another, stage each result. Knows nothing of Ray."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.store.errors import CorpusError
from orchestration.families.registry import family
from orchestration.lanes.checkpoints import scratch_of
from orchestration.lanes.cluster import go_to
from orchestration.ledger.away import StoreAway
from orchestration.ledger.notes import LedgerError
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Job, Result, RunsFailed, Trained
from trainers.engine.memory import WORKSPACE
from trainers.engine.meter import Meter, added, part_of
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from trainers.engine.world import Progress, Room, World

Staged = tuple[str, int]  # entry, attempt

OURS = ("corpora", "evaluators", "orchestration", "trainers")
NOTHING = 1e-9  # of a share, but for rounding
CERTAIN = (CorpusError, StudyError, TrainerError)  # they say what a person must change


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A job for a lane, with the attempt number of each run."""

    job: Job
    attempts: Mapping[str, int]


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


@dataclass(frozen=True, kw_only=True)
class LaneState:
    """What a lane says of its present job, whenever it is asked.

    staged: results that wait for the driver's commit, each with the seconds of work on its run up to it. moving:
    id and place of the run that is being worked on; looks: where it was when development data were scored.
    dropped: it was given up.
    """

    staged: Mapping[Staged, float] = field(default_factory=dict)
    moving: tuple[str, Progress] | None = None
    looks: tuple[Progress, ...] = ()
    problem: Problem | None = None
    dropped: bool = False


class Dropped(Exception):
    """Nobody waits for the run any more."""


def execute(job: Job, world: World) -> Iterator[Result]:
    """The one run body: a job's family trains and scores its runs. Worker groups and tests share it."""
    from trainers.engine.precision import require
    from trainers.engine.streams import seeded

    require(world.precision, world.device)
    apart = job.runs[0].streams
    assert all(run.streams == apart for run in job.runs), "runs that train as one have their streams from one seed"
    with seeded(apart):
        yield from family(job.runs[0].family).execute(job, world)


class Lane:
    """One process that executes jobs, one at a time, while another thread answers how far it is.

    warm: modules to import before the first job. gpus: the lane's share of a GPU, or their number; 0 means CPU.
    models: whether results keep their models; those of a search would fill a disk. folder: as `started_in` has it.
    """

    def __init__(
        self,
        body: Body | str,
        url: str,
        *,
        warm: Sequence[str],
        gpus: float,
        threads: int,
        checkpoint_every: int,
        models: bool,
        folder: str | None = None,
    ) -> None:
        from orchestration.ledger.ledger import Ledger

        go_to(folder)
        gc.disable()  # collecting amid the imports costs an eighth of them, and finds nothing
        for module in warm:
            importlib.import_module(module)
        gc.freeze()  # else every run pays for a collection over what torch has imported: 0.2 s
        gc.enable()
        self._settled = False
        if 0 < gpus < 1:
            import torch

            torch.cuda.set_per_process_memory_fraction(gpus)  # Ray shares a GPU out by count, not by memory
        self._gpus = gpus
        self._device = "cuda:0" if gpus else "cpu"  # Ray shows a lane no GPU but its own
        self._threads, self._checkpoint_every, self._models = threads, checkpoint_every, models
        self._body, self._ledger = resolved(body), Ledger(url)
        self._state, self._stopping, self._unwanted = LaneState(), False, ""
        self._worker = 0  # the thread that executes
        self._meter: Meter | None = None  # of the last job

    def pid(self) -> int:
        """The lane's process, once it is ready."""
        return os.getpid()

    def live(self) -> None:
        """Answers with the end of the lane's process alone."""
        threading.Event().wait()

    def state(self) -> LaneState:
        """How far the present job is. An answer renews the lane's lease."""
        if self._meter is not None:
            self._meter.watch()
        return self._state

    def stack(self) -> str:
        """The calls that the present job is in."""
        frame = sys._current_frames().get(self._worker)
        return "".join(traceback.format_stack(frame)) if frame else ""

    def stop(self) -> None:
        """Let the running step end, and the job with it, its checkpoint saved."""
        self._stopping = True

    def drop(self, run_id: str) -> None:
        """Give this run up after the running step, without a checkpoint, if it is still being worked on."""
        self._unwanted = run_id

    def work(self, lease: Lease) -> LaneState:
        """Execute a job and stage each result as it comes. What the job raises is part of the answer."""
        self._state, self._worker = LaneState(), threading.get_ident()
        try:
            with self._ledger.downloads_end():  # of models: a lane lives through many jobs
                self._execute(lease)
        except Dropped:
            self._state = replace(self._state, dropped=True)
        except Exception as error:  # noqa: BLE001  any error of a run is recorded, none ends the study
            self._state = replace(self._state, problem=problem(error))
        if not self._settled and self._state.problem is None and not self._state.dropped:
            gc.collect()
            gc.freeze()  # what lives after the first whole job stays: what it imported besides, caches
            self._settled = True
        return self._state

    def _execute(self, lease: Lease) -> None:
        """Runs whose model is damaged fail for that alone, at the end: the others do without them."""
        job, damaged = with_models(lease.job, self._ledger)
        waiting = [run.id for run in job.runs]
        try:
            self._carry_out(replace(lease, job=job), waiting)
        except Exception as error:
            if not damaged or isinstance(error, Dropped):
                raise
            own = error.errors if isinstance(error, RunsFailed) else dict.fromkeys(waiting, error)
            raise RunsFailed({**own, **damaged}) from error
        if damaged:
            raise RunsFailed(damaged)

    def _carry_out(self, lease: Lease, waiting: list[str]) -> None:
        """waiting: the runs that lack some entry; in the end, none."""
        job = lease.job
        owed = {run.id: {*run.entries} - ({run.id} if run.id in job.models else set()) for run in job.runs}

        def report(progress: Progress) -> None:
            if waiting[0] == self._unwanted:
                raise Dropped
            looks = self._state.looks + ((progress,) if progress.step in lease.job.runs[0].look_at else ())
            self._state = replace(self._state, moving=(waiting[0], progress), looks=looks)

        meter = self._meter = Meter(self._device, job.runs[0].precision, self._gpus)
        with self._rooms(lease) as rooms:
            world = with_meter(self._world(lease, report, rooms), meter)
            self._stage_all(lease, metered(self._body(job, world), meter), owed, waiting)
        if waiting:
            raise RuntimeError(f"the job ended without all results of {', '.join(waiting)}")

    @contextmanager
    def _rooms(self, lease: Lease) -> Iterator[Mapping[str, Room]]:
        """Where each run of a job keeps its checkpoints; nowhere where a family trains several as one model."""
        if len(lease.job.runs) > 1 and not lease.job.runs[0].stacked:
            yield {}
            return
        with ExitStack() as open_rooms:
            yield {
                run.id: open_rooms.enter_context(scratch_of(self._ledger, run.id, lease.attempts[run.id]))
                for run in lease.job.runs
            }

    def _stage_all(
        self, lease: Lease, results: Iterator[Result], owed: Mapping[str, set[str]], waiting: list[str]
    ) -> None:
        """Stage what comes of a job. owed: the entries that each run lacks; waiting: the runs that lack some."""
        spent = dict.fromkeys(owed, 0.0)  # seconds of work on each run
        for result, is_new in billed(results, self._ledger):
            run_id, attempt = result.run.id, lease.attempts[result.run.id]
            if isinstance(result, Trained) and not self._models:
                result = replace(result, save_model=None)
            if is_new:
                self._ledger.stage(result, attempt)
                spent[run_id] += result.cost["seconds"]
            owed[run_id].discard(result.entry)
            if not owed[run_id]:
                waiting.remove(run_id)
            moving = self._state.moving if waiting and waiting[0] == run_id else None
            staged = {**self._state.staged, (result.entry, attempt): spent[run_id]}
            self._state = LaneState(staged=staged, moving=moving)

    def _world(self, lease: Lease, report: Callable[[Progress], None], rooms: Mapping[str, Room]) -> World:
        from trainers.engine.world import World

        first = lease.job.runs[0]
        of_all = World(
            device=self._device,
            precision=first.precision,
            zero_stage=first.zero_stage,
            threads=self._threads,
            checkpoint_every=self._checkpoint_every,
            report=report,
            stopping=lambda: self._stopping,
            rooms=rooms,
        )
        return of_all if len(lease.job.runs) > 1 else of_all.for_run(first.id)


def variables_of(threads: int, gpus: float) -> dict[str, str]:
    """What the process of a lane or of a worker finds in its environment, however it was started.

    OpenMP and the tokenizers keep to its threads. From a process without a GPU Ray hides none. On a card the first
    job may encode alone, and what cuBLAS is told later than its first product it does not hear.
    """
    variables = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL", "RAYON")}
    return variables | (dict([WORKSPACE]) if gpus else {"CUDA_VISIBLE_DEVICES": ""})


def metered(results: Iterator[Result], meter: Meter) -> Iterator[Result]:
    """Each result with what it cost since the one before; what was trained at once shares that out."""
    of_all: Mapping[str, float] = {}
    left = 0.0  # of it, that is due to others
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

    What the others took is added to the next of their run that is new, or no entry would hold it.
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


def resolved(body: Body | str) -> Body:
    """A run body given as such or as "module:function"."""
    if callable(body):
        return body
    module, function = body.split(":")
    return getattr(importlib.import_module(module), function)


def with_models(job: Job, ledger: Ledger) -> tuple[Job, Mapping[str, Exception]]:
    """The job with the folders of the models that the ledger holds of its runs: those are scored alone.

    Runs whose model is damaged are left out of it, and told of with the error of each, by id. That is raised where
    no other run is left.
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
