"""Where runs execute: pooled lanes for runs of one worker, Ray Train worker groups for larger ones.

A pooled lane is a long-lived actor: it imports torch once and executes job after job, so a run costs what it
computes. The driver hands out jobs with a fencing number per run, asks every lane about once a second how far it
is, and commits what lanes have staged. The answer is the renewal of a lane's lease: a lane that dies, stays silent
or comes no further is replaced, and its job is leased again under a higher number.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestration.families.registry import family
from orchestration.lanes.cluster import RunShare, connected, cores, named_address, runs_that_fit, started_in
from orchestration.lanes.events import Event, Outcome, Preparing
from orchestration.lanes.lane import LaneKind
from orchestration.lanes.pooled.pool import Pool
from orchestration.lanes.pooled.queued import JobSource
from orchestration.lanes.pooled.slots import start
from orchestration.plan.launcher import launcher
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.blocks import Resources
    from orchestration.study.run import Body, Job

LEASE_SECONDS = 60.0  # a lane that answers nothing for so long is replaced
STOPPING = b"stopping: running steps end and are saved; once more to stop now\n"
FRESH_LINE = b"\r\x1b[K"  # in place of a line that moves


@dataclass(eq=False, kw_only=True)
class Lanes:
    """Where the jobs of a study execute: Ray, reached with the first of them, and lanes, kept for the next.

    Use it while driving the study, and close it. warm: the modules that a lane imports before its first job; what
    the family of the first job names, where that is None.
    """

    ledger: Ledger
    resources: Resources
    on_event: Callable[[Event], None]
    body: Body | str = "orchestration.lanes.lane:execute"
    warm: Sequence[str] | None = None
    threads_per_lane: int = 1
    lease_seconds: float = LEASE_SECONDS
    stop: threading.Event = field(default_factory=threading.Event)
    _ray: ExitStack = field(default_factory=ExitStack)
    _pool: Pool | None = None
    _reached: bool = False

    def close(self) -> None:
        """End the lanes, and the Ray that was started for them."""
        with self._ray:
            self._end_pool()

    def at_once(self, jobs: Sequence[Job]) -> int:
        """How many of these jobs execute at a time, were there enough of them. StudyError as of `run`."""
        self._reach(jobs, more=True)
        grouped = any(launcher(job, self.resources) == "train" for job in jobs)
        return self.resources.lanes or _fitting(self._share(grouped), self._growing)

    def run(self, jobs: Sequence[Job], *, more: bool = False) -> Outcome:
        """Execute the jobs and commit every result to the ledger.

        Jobs for pooled lanes come first, then those for worker groups. more: others may follow, and a machine of
        one's own keeps its lanes for them, unless groups need their room.
        Runs that the ledger holds already are not done again. A run that fails is recorded with its traceback and
        tried again `resources.retries` times, unless its error is certain to come back. SIGINT or SIGTERM ends the
        launch: running steps end and are saved, and what is staged is committed. A second signal does not wait for
        steps.
        Raises StudyError when Ray cannot be started or has no room for one lane.
        """
        if not jobs:
            return Outcome()
        pooled = [job for job in jobs if launcher(job, self.resources) == "pool"]
        grouped = [job for job in jobs if launcher(job, self.resources) == "train"]
        self._reach(jobs, more)
        fitting = _fitting(self._share(bool(grouped)), self._growing)  # known before the first job starts
        outcome = Outcome()
        with asked_to_stop(self.stop):
            if pooled:
                lanes = self.resources.lanes or _fitting(self._share(grouped=False), self._growing)
                tries = self.resources.retries + 1
                outcome = self._pooled(pooled).run(pooled, lanes=min(lanes, len(pooled)), tries=tries, more=more)
            if grouped:
                from orchestration.lanes.groups.groups import Groups

                self._end_pool()  # a lane that waits for later jobs has a core, and a GPU, that groups need
                groups = Groups(
                    self.ledger, self.resources, self.on_event, body=self.body, threads=self.threads_per_lane
                )
                runs = [run for job in grouped for run in job.runs]
                growing = self._growing and self.resources.lanes is None
                later = groups.run(runs, self.resources.lanes or fitting, self.stop, growing=growing)
                outcome = Outcome(
                    finished=outcome.finished + later.finished,
                    failed={**outcome.failed, **later.failed},
                    stopped=outcome.stopped or later.stopped,
                )
        return outcome

    @property
    def _growing(self) -> bool:
        """A cluster may come to have more room; a machine's own Ray has all it ever will."""
        return named_address() is not None

    def _share(self, grouped: bool) -> RunShare:
        one = RunShare(
            cpus=self.threads_per_lane,
            gpus=self.resources.gpus_per_worker,
            memory=self.resources.memory_per_worker,
        )
        workers = self.resources.workers_per_run if grouped else 1
        return RunShare(cpus=one.cpus * workers, gpus=one.gpus * workers, memory=one.memory * workers)

    def _reach(self, jobs: Sequence[Job], more: bool) -> None:
        """Be connected to Ray from now on. more: jobs of any kind may follow."""
        if self._reached:
            return
        grouped = more or any(launcher(job, self.resources) == "train" for job in jobs)
        self.on_event(_reaching())
        self._ray.enter_context(connected(max(cores(), self._share(grouped).cpus * (self.resources.lanes or 1))))
        self._reached = True

    def _pooled(self, jobs: Sequence[Job]) -> Pool:
        if self._pool is None:
            one, resources = self._share(grouped=False), self.resources
            warm = family(jobs[0].runs[0].family).imports if self.warm is None else self.warm
            self._pool = Pool(
                _starting(self.body, warm, one, resources.checkpoint_every, models=True),
                self.ledger,
                self.on_event,
                self.stop,
                lease_seconds=self.lease_seconds,
                stall_seconds=resources.stall_seconds,
                growing=self._growing and resources.lanes is None,
            )
        return self._pool

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None


def launch(
    jobs: Sequence[Job],
    *,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.lanes.lane:execute",
    warm: Sequence[str] | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> Outcome:
    """Execute the jobs as `Lanes.run`, in lanes that end with the last of them. Call it while driving a study."""
    lanes = Lanes(
        ledger=ledger, resources=resources, on_event=on_event, body=body, warm=warm, lease_seconds=lease_seconds
    )
    with closing(lanes):
        return lanes.run(jobs)


def serve(
    open_source: Callable[[int], AbstractContextManager[JobSource]],
    *,
    at_once: int,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.lanes.lane:execute",
    warm: Sequence[str],
) -> Outcome:
    """Execute jobs as they are asked for, in pooled lanes that keep no models, until the source has no more.

    at_once: the most runs that can be asked for at a time; there are no more lanes than that. open_source is told
    how many there are, once Ray is there. Otherwise as `launch`.
    """
    on_event(_reaching())
    stop = threading.Event()
    with connected(max(cores(), resources.lanes or 1)), asked_to_stop(stop):
        one = RunShare(cpus=1, gpus=resources.gpus_per_worker, memory=resources.memory_per_worker)
        fitting = _fitting(one, named_address() is not None)
        lanes = min(resources.lanes or fitting, at_once)
        starting = _starting(body, warm, one, resources.checkpoint_every, models=False)
        stall = resources.stall_seconds
        pool = Pool(starting, ledger, on_event, stop, lease_seconds=LEASE_SECONDS, stall_seconds=stall)
        with open_source(lanes) as source:
            return pool.run((), lanes=lanes, tries=resources.retries + 1, source=source)


def _starting(
    body: Body | str, warm: Sequence[str], share: RunShare, checkpoint_every: int, *, models: bool
) -> Callable[[str], Any]:
    """What starts a lane of this kind, with the ledger at a URL."""
    kind = LaneKind(
        body=body,
        warm=tuple(warm),
        gpus=share.gpus,
        threads=share.cpus,
        memory=share.memory,
        checkpoint_every=checkpoint_every,
        models=models,
        folder=started_in(),
    )
    return partial(start, kind)


def _reaching() -> Preparing:
    """Joining a cluster and starting a Ray of one's own take seconds each."""
    address = named_address()
    return Preparing(what=f"joining Ray at {address}" if address else "starting Ray")


@contextmanager
def asked_to_stop(stop: threading.Event) -> Iterator[None]:
    """Within the block SIGINT or SIGTERM sets the event; the second signal raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread alone
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        os.write(2, (FRESH_LINE if os.isatty(2) else b"") + STOPPING)  # a signal's handler may not print

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fitting(share: RunShare, growing: bool) -> int:
    """How many runs of this size fit at a time. Where none does, 1 if the cluster may grow, else StudyError."""
    fitting = runs_that_fit(share)
    if fitting < 1 and growing:
        return 1
    if fitting < 1:
        raise StudyError(
            f"resources: a run needs {share.words}, and Ray has no such room\n"
            f"  accepted: fewer `workers_per_run`, other `gpus_per_run`, less `memory_gib_per_run`, or a cluster "
            f"with as much"
        )
    return fitting
