"""What happens inside a lane: execute jobs one after another, stage each result. Knows nothing of Ray."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orchestration.families.registry import family
from orchestration.lanes.bodies import Problem, billed, metered, problem, with_meter, with_models
from orchestration.lanes.checkpoints import scratch_of
from orchestration.lanes.cluster import go_to
from orchestration.study.run import Body, Job, Result, RunsFailed, Trained
from trainers.engine.memory import WORKSPACE
from trainers.engine.meter import Meter

if TYPE_CHECKING:
    from trainers.engine.world import Progress, Room, World

Staged = tuple[str, int]  # entry, attempt


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A job for a lane, with the attempt number of each run."""

    job: Job
    attempts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class LaneState:
    """What a lane says of its present job, whenever it is asked.

    staged: results that wait for the driver's commit, each with the seconds of work on its run so far. moving: the
    run that is being worked on, by its id, and how far it is. looks: the same at each step where development data
    were scored. dropped: the job was given up.
    """

    staged: Mapping[Staged, float] = field(default_factory=dict)
    moving: tuple[str, Progress] | None = None
    looks: tuple[Progress, ...] = ()
    problem: Problem | None = None
    dropped: bool = False


@dataclass(frozen=True, kw_only=True)
class LaneKind:
    """What all lanes of a pool have in common.

    warm: modules to import before the first job. gpus: a lane's share of a GPU, or their number; 0 means CPU.
    memory: in bytes. models: whether results keep their models; those of a search would fill a disk. folder: as
    `started_in` has it.
    """

    body: Body
    warm: tuple[str, ...]
    gpus: float
    threads: int
    memory: int
    checkpoint_every: int
    models: bool
    folder: str | None = None


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
    """One process that executes jobs, one at a time, while another thread answers how far it is."""

    def __init__(self, url: str, kind: LaneKind) -> None:
        from orchestration.ledger.ledger import Ledger

        go_to(kind.folder)
        gc.disable()  # collecting amid the imports costs an eighth of them, and finds nothing
        for module in kind.warm:
            importlib.import_module(module)
        gc.freeze()  # else every run pays for a collection over what torch has imported: 0.2 s
        gc.enable()
        self._settled = False
        if 0 < kind.gpus < 1:
            import torch

            torch.cuda.set_per_process_memory_fraction(kind.gpus)  # Ray shares a GPU out by count, not by memory
        self._kind = kind
        self._device = "cuda:0" if kind.gpus else "cpu"  # Ray shows a lane no GPU but its own
        self._body, self._ledger = kind.body, Ledger(url)
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
        """The runs of a job whose model is damaged fail for that, once the others are done without them."""
        job, damaged = with_models(lease.job, self._ledger)
        owed = {run.id: {*run.entries} - ({run.id} if run.id in job.models else set()) for run in job.runs}
        try:
            self._execute_whole(replace(lease, job=job), owed)
        except Exception as error:
            if not damaged or isinstance(error, Dropped):
                raise
            own = error.errors if isinstance(error, RunsFailed) else dict.fromkeys(_owing(owed), error)
            raise RunsFailed({**own, **damaged}) from error
        if damaged:
            raise RunsFailed(damaged)

    def _execute_whole(self, lease: Lease, owed: Mapping[str, set[str]]) -> None:
        """Execute the runs of a job. owed: the entries that each has still to leave; in the end, none."""
        job = lease.job

        def report(progress: Progress) -> None:
            at_work = next(_owing(owed))
            if at_work == self._unwanted:
                raise Dropped
            looks = self._state.looks + ((progress,) if progress.step in job.runs[0].look_at else ())
            self._state = replace(self._state, moving=(at_work, progress), looks=looks)

        meter = self._meter = Meter(self._device, job.runs[0].precision, self._kind.gpus)
        with self._rooms(lease) as rooms:
            world = with_meter(self._world(lease, report, rooms), meter)
            self._stage_all(lease, metered(self._body(job, world), meter), owed)
        if left := list(_owing(owed)):
            raise RuntimeError(f"the job ended without all results of {', '.join(left)}")

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

    def _stage_all(self, lease: Lease, results: Iterator[Result], owed: Mapping[str, set[str]]) -> None:
        """Stage what comes of a job, and strike it from what is owed."""
        spent = dict.fromkeys(owed, 0.0)  # seconds of work on each run
        for result, is_new in billed(results, self._ledger):
            run_id, attempt = result.run.id, lease.attempts[result.run.id]
            if isinstance(result, Trained) and not self._kind.models:
                result = replace(result, save_model=None)
            if is_new:
                self._ledger.stage(result, attempt)
                spent[run_id] += result.cost["seconds"]
            owed[run_id].discard(result.entry)
            moving = self._state.moving if next(_owing(owed), None) == run_id else None
            staged = {**self._state.staged, (result.entry, attempt): spent[run_id]}
            self._state = LaneState(staged=staged, moving=moving)

    def _world(self, lease: Lease, report: Callable[[Progress], None], rooms: Mapping[str, Room]) -> World:
        from trainers.engine.world import World

        first = lease.job.runs[0]
        of_all = World(
            device=self._device,
            precision=first.precision,
            zero_stage=first.zero_stage,
            threads=self._kind.threads,
            checkpoint_every=self._kind.checkpoint_every,
            report=report,
            stopping=lambda: self._stopping,
            rooms=rooms,
        )
        return of_all if len(lease.job.runs) > 1 else of_all.for_run(first.id)


def _owing(owed: Mapping[str, set[str]]) -> Iterator[str]:
    """The runs that owe entries, in the order of their job: the first is the one at work."""
    return (run_id for run_id, entries in owed.items() if entries)


def variables_of(threads: int, gpus: float) -> dict[str, str]:
    """The environment of a lane's or worker's process, however it was started.

    OpenMP and the tokenizers keep to its threads. A process without a GPU must not see any, which Ray does not see
    to. On a GPU cuBLAS is told its workspace before the first product: later it does not listen. The supervisor of
    a script ends it with all that it started; Ray would kill the supervisor alone, and the others would stay.
    """
    variables = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL", "RAYON")}
    variables |= {"RAY_kill_child_processes_on_worker_exit": "0"}
    return variables | (dict([WORKSPACE]) if gpus else {"CUDA_VISIBLE_DEVICES": ""})
