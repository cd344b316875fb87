"""Executes the jobs of a study: runs of one worker in pooled lanes, larger ones in Ray Train worker groups.

A pooled lane is a long-lived actor: it imports torch once and executes job after job, so a run costs only its own
work. The driver hands out jobs with a fencing number per run, polls every lane about once a second, and commits
what lanes have staged. Each answer renews the lane's lease: a lane that dies, stays silent or makes no progress is
replaced, and its job is leased again under a higher number.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestration.families.registry import family
from orchestration.lanes.cluster import RunShare, connected, cores, named_address, runs_that_fit, started_in
from orchestration.lanes.events import Event, Outcome, Preparing
from orchestration.lanes.lane import LaneKind, execute
from orchestration.lanes.pooled.commits import nothing_more
from orchestration.lanes.pooled.pool import Pool
from orchestration.lanes.pooled.queued import JobSource
from orchestration.lanes.pooled.slots import start
from orchestration.plan.launcher import launcher
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.blocks import Resources
    from orchestration.study.run import Body, Job, Run

LEASE_SECONDS = 60.0  # a lane without an answer for so long is replaced
STOPPING = b"stopping: running steps end and are saved; once more to stop now\n"
FRESH_LINE = b"\r\x1b[K"  # clears the progress line of a terminal


@dataclass(eq=False, kw_only=True)
class Lanes:
    """Executes the jobs of a study. Connects to Ray with the first job, and keeps lanes for further ones.

    Use it while driving the study, and close it. warm: modules that a lane imports before its first job; None for
    those that the first job's family names. models: whether pooled lanes keep the models of their runs.
    afterwards: called for each run that was executed, before the event of its end; for a pooled lane's run by
    another thread if the ledger is remote.
    """

    ledger: Ledger
    resources: Resources
    on_event: Callable[[Event], None]
    body: Body = execute
    warm: Sequence[str] | None = None
    models: bool = True
    afterwards: Callable[[Run], None] = nothing_more
    threads_per_lane: int = 1
    lease_seconds: float = LEASE_SECONDS
    stop: threading.Event = field(default_factory=threading.Event)
    _ray: ExitStack = field(default_factory=ExitStack)
    _pool: Pool | None = None
    _connected: bool = False

    def close(self) -> None:
        """End the lanes, and Ray if it was started for them."""
        with self._ray:
            self._end_pool()

    def at_once(self, jobs: Sequence[Job]) -> int:
        """How many jobs of this kind can execute at a time. Raises StudyError as `run`."""
        self._connect(grouped=True)  # jobs of any kind may follow
        grouped = any(launcher(job, self.resources) == "train" for job in jobs)
        return self.resources.lanes or self._fitting(grouped)

    def run(self, jobs: Sequence[Job], *, more: bool = False) -> Outcome:
        """Execute the jobs and commit every result to the ledger: first jobs for pooled lanes, then worker groups.

        more: other jobs may follow; idle lanes are kept for them, unless groups need their room, or a growing
        cluster would keep machines for them. Runs that the ledger holds are skipped. A run that fails is recorded
        with its traceback and tried again `resources.retries` times, unless its error is certain to recur. SIGINT,
        SIGTERM or SIGHUP ends the launch: running steps end and are saved, and staged results are committed. A
        second signal does not wait for steps. Raises StudyError if Ray cannot be started or has no room for one
        lane.
        """
        if not jobs:
            return Outcome()
        pooled = [job for job in jobs if launcher(job, self.resources) == "pool"]
        grouped = [job for job in jobs if launcher(job, self.resources) == "train"]
        self._connect(more or bool(grouped))
        fitting = self._fitting(bool(grouped))  # raises before the first job starts
        growing = self._growing and self.resources.lanes is None
        outcome = Outcome()
        with asked_to_stop(self.stop):
            if pooled:
                lanes = self.resources.lanes or self._fitting(grouped=False)
                warm = family(pooled[0].runs[0].family).imports if self.warm is None else self.warm
                pool = self._pooled(warm, growing=growing)
                outcome = pool.run(pooled, lanes=min(lanes, len(pooled)), tries=self._tries, more=more)
            if grouped:
                from orchestration.lanes.groups.groups import Groups

                self._end_pool()  # groups need the cores and GPUs of idle lanes
                groups = Groups(
                    self.ledger,
                    self.resources,
                    self.on_event,
                    body=self.body,
                    threads=self.threads_per_lane,
                    afterwards=self.afterwards,
                )
                runs = [run for job in grouped for run in job.runs]
                later = groups.run(runs, self.resources.lanes or fitting, self.stop, growing=growing)
                outcome = Outcome(
                    finished=outcome.finished + later.finished,
                    failed={**outcome.failed, **later.failed},
                    stopped=outcome.stopped or later.stopped,
                )
        return outcome

    def serve(self, open_source: Callable[[int], AbstractContextManager[JobSource]], *, at_once: int) -> Outcome:
        """Execute jobs from a source in pooled lanes, until the source has no more. Needs `warm`.

        at_once: the most runs that the source asks for at a time, and so the most lanes. open_source gets the
        number of lanes, once Ray is connected. Otherwise as `run`.
        """
        assert self.warm is not None, "no job tells yet what lanes are to import"
        self._connect(grouped=False)
        with asked_to_stop(self.stop):
            fitting = self._fitting(grouped=False)  # raises without room, even if `lanes` is given
            lanes = min(self.resources.lanes or fitting, at_once)
            pool = self._pooled(self.warm, growing=False)
            with open_source(lanes) as source:
                return pool.run((), lanes=lanes, tries=self._tries, source=source)

    @property
    def _tries(self) -> int:
        return self.resources.retries + 1

    @property
    def _growing(self) -> bool:
        """True for a cluster, which may grow; a Ray of this machine's own does not."""
        return named_address() is not None

    def _share(self, grouped: bool) -> RunShare:
        workers = self.resources.workers_per_run if grouped else 1
        return RunShare(
            cpus=self.threads_per_lane * workers,
            gpus=self.resources.gpus_per_worker * workers,
            memory=self.resources.memory_per_worker * workers,
        )

    def _fitting(self, grouped: bool) -> int:
        """How many runs fit at a time; at least 1 if the cluster may grow, else StudyError if none fits."""
        share = self._share(grouped)
        fitting = runs_that_fit(share)
        if fitting < 1 and not self._growing:
            raise StudyError(
                f"resources: a run needs {share.words}, and Ray has no such room\n"
                f"  accepted: fewer `workers_per_run`, other `gpus_per_run`, less `memory_gib_per_run`, or a "
                f"cluster with as much"
            )
        return max(fitting, 1)

    def _connect(self, grouped: bool) -> None:
        """Connect to Ray, unless that was done. grouped: there may be jobs for worker groups."""
        if self._connected:
            return
        address = named_address()
        self.on_event(Preparing(what=f"joining Ray at {address}" if address else "starting Ray"))
        self._ray.enter_context(connected(max(cores(), self._share(grouped).cpus * (self.resources.lanes or 1))))
        self._connected = True

    def _pooled(self, warm: Sequence[str], *, growing: bool) -> Pool:
        """The pool, made at the first call. growing: it opens lanes as a cluster gets more room."""
        if self._pool is None:
            self._pool = Pool(
                partial(start, self._kind(warm)),
                self.ledger,
                self.on_event,
                self.stop,
                lease_seconds=self.lease_seconds,
                stall_seconds=self.resources.stall_seconds,
                growing=growing,
                afterwards=self.afterwards,
            )
        return self._pool

    def _kind(self, warm: Sequence[str]) -> LaneKind:
        share = self._share(grouped=False)
        return LaneKind(
            body=self.body,
            warm=tuple(warm),
            gpus=share.gpus,
            threads=share.cpus,
            memory=share.memory,
            checkpoint_every=self.resources.checkpoint_every,
            models=self.models,
            folder=started_in(),
        )

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
    body: Body = execute,
    warm: Sequence[str] | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> Outcome:
    """Execute the jobs as `Lanes.run`, in lanes that end with the last of them. Call it while driving a study."""
    lanes = Lanes(
        ledger=ledger, resources=resources, on_event=on_event, body=body, warm=warm, lease_seconds=lease_seconds
    )
    with closing(lanes):
        return lanes.run(jobs)


@contextmanager
def asked_to_stop(stop: threading.Event) -> Iterator[None]:
    """Within the block SIGINT, SIGTERM or SIGHUP sets the event; the second signal raises KeyboardInterrupt.

    SIGHUP is that of a terminal that closes. It often comes twice, of the shell and of the system, or right after
    SIGTERM: it is never the second that does not wait. Under nohup it asks for nothing.
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread alone
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            if number == signal.SIGHUP:
                return
            raise KeyboardInterrupt
        stop.set()
        with suppress(OSError):  # of a terminal that has closed
            os.write(2, (FRESH_LINE if os.isatty(2) else b"") + STOPPING)  # print is not safe in a signal handler

    asked = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        asked.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in asked}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
