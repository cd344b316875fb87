"""A lane: executes jobs one after another and stages each result. This file does not use Ray."""

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
    from trainers.engine.world import Progress, RunStorage, World

Staged = tuple[str, int]  # entry, attempt
TOKENISING = 4  # threads at least that tokenise for a GPU, which computes while they do


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A job for a lane, with the attempt number of each run."""

    job: Job
    attempts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class LaneState:
    """The state of a lane's present job, as the driver polls it.

    staged: results that wait for the driver's commit, each with the seconds of work on its run so far. moving: the
    id and progress of the run in work. looks: its progress at each step at which development data were scored.
    problem: why the job failed. dropped: the job was given up on request.
    """

    staged: Mapping[Staged, float] = field(default_factory=dict)
    moving: tuple[str, Progress] | None = None
    looks: tuple[Progress, ...] = ()
    problem: Problem | None = None
    dropped: bool = False


@dataclass(frozen=True, kw_only=True)
class LaneKind:
    """The settings that all lanes of a pool share.

    warm: modules to import before the first job. gpus: a lane's number of GPUs, or its share of one; 0 means CPU.
    memory: in bytes. models: whether results keep their models; a search's models would fill a disk. folder: from
    `started_in`.
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
    """The driver has asked to give the run up."""


def execute(job: Job, world: World) -> Iterator[Result]:
    """The one run body: a job's family trains and scores its runs. Worker groups and tests share it."""
    from trainers.engine.precision import require
    from trainers.engine.streams import seeded

    require(world.precision, world.device)
    own_seeds = job.runs[0].streams
    assert all(run.streams == own_seeds for run in job.runs), "runs that train as one share their streams' seeds"
    with seeded(own_seeds):
        yield from family(job.runs[0].family).execute(job, world)


class Lane:
    """A process that executes jobs, one at a time, while another thread answers the driver's polls."""

    def __init__(self, url: str, kind: LaneKind) -> None:
        from orchestration.ledger.ledger import Ledger

        go_to(kind.folder)
        gc.disable()  # collections during imports take time and find nothing
        for module in kind.warm:
            importlib.import_module(module)
        gc.freeze()  # else each collection goes through all that torch has imported, at every run
        gc.enable()
        self._settled = False
        if 0 < kind.gpus < 1:
            import torch

            torch.cuda.set_per_process_memory_fraction(kind.gpus)  # Ray does not limit the memory of a GPU's share
        self._kind = kind
        self._device = "cuda:0" if kind.gpus else "cpu"  # Ray shows a lane its own GPU only
        self._body, self._ledger = kind.body, Ledger(url)
        self._state, self._stopping, self._unwanted = LaneState(), False, ""
        self._worker = 0  # id of the thread that executes jobs
        self._meter: Meter | None = None  # of the last job

    def pid(self) -> int:
        """The lane's process id; the first answer tells that the lane is ready."""
        return os.getpid()

    def live(self) -> None:
        """Never return: the call ends only when the lane's process dies, which the driver notices by it."""
        threading.Event().wait()

    def state(self) -> LaneState:
        """The state of the present job. Each answer renews the lane's lease."""
        if self._meter is not None:
            self._meter.watch()
        return self._state

    def stack(self) -> str:
        """The stack of the thread that executes the present job, as text."""
        frame = sys._current_frames().get(self._worker)
        return "".join(traceback.format_stack(frame)) if frame else ""

    def stop(self) -> None:
        """End the job after the running step, with a checkpoint."""
        self._stopping = True

    def drop(self, run_id: str) -> None:
        """Give this run up after the running step, without a checkpoint, if it is still in work."""
        self._unwanted = run_id

    def work(self, lease: Lease) -> LaneState:
        """Execute a job, stage each result, and return the final state, in which `problem` tells of an error."""
        self._state, self._worker = LaneState(), threading.get_ident()
        self._unwanted = ""  # another point of a search may ask for a run that was given up
        try:
            with self._ledger.downloads_end():  # else downloaded models of many jobs pile up
                self._execute(lease)
        except Dropped:
            self._state = replace(self._state, dropped=True)
        except Exception as error:  # noqa: BLE001  any error of a run is recorded, none ends the study
            self._state = replace(self._state, problem=problem(error))
        if not self._settled and self._state.problem is None and not self._state.dropped:
            gc.collect()
            gc.freeze()  # objects that outlive the first whole job, such as further imports and caches, stay
            self._settled = True
        return self._state

    def _execute(self, lease: Lease) -> None:
        """Execute a job without the runs whose model is damaged, and raise their errors afterwards."""
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
        """Execute the runs of a job. owed: the entries that each run has yet to deliver; empty sets at the end."""
        job = lease.job

        def report(progress: Progress) -> None:
            in_work = next(_owing(owed), None)
            if in_work is None:
                return  # a body may tell of its last step after its last result
            if in_work == self._unwanted:
                raise Dropped
            looks = self._state.looks + ((progress,) if progress.step in job.runs[0].look_at else ())
            self._state = replace(self._state, moving=(in_work, progress), looks=looks)

        meter = self._meter = Meter(self._device, job.runs[0].precision, self._kind.gpus)
        with self._storage(lease) as storage:
            world = with_meter(self._world(lease, report, storage), meter)
            self._stage_all(lease, metered(self._body(job, world), meter), owed)
        if left := list(_owing(owed)):
            raise RuntimeError(f"the job ended without all results of {', '.join(left)}")

    @contextmanager
    def _storage(self, lease: Lease) -> Iterator[Mapping[str, RunStorage]]:
        """Open the checkpoint folder of each run of a job; none if the runs train as one model."""
        if len(lease.job.runs) > 1 and not lease.job.runs[0].stacked:
            yield {}
            return
        with ExitStack() as stack:
            yield {
                run.id: stack.enter_context(scratch_of(self._ledger, run.id, lease.attempts[run.id]))
                for run in lease.job.runs
            }

    def _stage_all(self, lease: Lease, results: Iterator[Result], owed: Mapping[str, set[str]]) -> None:
        """Stage the results of a job, and remove each from `owed`."""
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

    def _world(self, lease: Lease, report: Callable[[Progress], None], storage: Mapping[str, RunStorage]) -> World:
        from trainers.engine.world import World

        first = lease.job.runs[0]
        shared = World(
            device=self._device,
            precision=first.precision,
            zero_stage=first.zero_stage,
            threads=self._kind.threads,
            checkpoint_every=self._kind.checkpoint_every,
            report=report,
            stopping=lambda: self._stopping,
            storage=storage,
        )
        return shared if len(lease.job.runs) > 1 else shared.for_run(first.id)


def _owing(owed: Mapping[str, set[str]]) -> Iterator[str]:
    """The runs that owe entries, in the order of their job; the first is the one in work."""
    return (run_id for run_id, entries in owed.items() if entries)


def variables_of(threads: int, gpus: float) -> dict[str, str]:
    """Environment variables of a lane's or worker's process.

    They limit OpenMP, MKL and the tokenizers to its threads, hide GPUs from a process without one, which Ray does
    not do, and set cuBLAS's workspace, which it reads only before its first product. They keep Ray from killing a
    lane's children: a script's supervisor ends it with all that it started, and would be killed alone.
    """
    variables = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL")}
    variables |= {"RAYON_NUM_THREADS": str(max(threads, TOKENISING if gpus else 1))}
    variables |= {"RAY_kill_child_processes_on_worker_exit": "0"}
    return variables | (dict([WORKSPACE]) if gpus else {"CUDA_VISIBLE_DEVICES": ""})
