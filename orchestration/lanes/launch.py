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
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from orchestration.lanes.cluster import RunShare, connected, cores, named_address, runs_that_fit
from orchestration.lanes.events import (
    Event,
    LaneReady,
    Outcome,
    Preparing,
    RunFailed,
    RunFinished,
    RunMoved,
    RunStarted,
)
from orchestration.lanes.pool import JobSource, LaneKind, Pool
from orchestration.plan.launcher import launcher
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.blocks import Resources
    from orchestration.study.run import Body, Job

__all__ = ["Event", "LaneReady", "Outcome", "RunFailed", "RunFinished", "RunMoved", "RunStarted", "launch"]

LEASE_SECONDS = 60.0  # a lane that answers nothing for so long is replaced
STOPPING = b"stopping: running steps end and are saved; once more to stop now\n"
FRESH_LINE = b"\r\x1b[K"  # in place of a line that moves
WARM = ("torch", "transformers", "deepspeed", "trainers.engine.loop")  # what every run imports, paid once per lane


def launch(
    jobs: Sequence[Job],
    *,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.lanes.lane:execute",
    warm: Sequence[str] = WARM,
    threads_per_lane: int = 1,
    lease_seconds: float = LEASE_SECONDS,
) -> Outcome:
    """Execute the jobs and commit every result to the ledger; call it while driving the study.

    Jobs for pooled lanes come first, then those for worker groups.
    Runs that the ledger holds already are not done again. A run that fails is recorded with its traceback and
    tried again `resources.retries` times, unless its error is certain to come back. SIGINT or SIGTERM ends the
    launch: running steps end and are saved, and what is staged is committed. A second signal does not wait for
    steps.
    Raises StudyError when Ray cannot be started or has no room for one lane.
    """
    if not jobs:
        return Outcome()
    pooled = [job for job in jobs if launcher(job, resources) == "pool"]
    grouped = [job for job in jobs if launcher(job, resources) == "train"]
    one = RunShare(cpus=threads_per_lane, gpus=resources.gpus_per_worker, memory=resources.memory_per_worker)
    workers = resources.workers_per_run if grouped else 1
    whole = RunShare(cpus=one.cpus * workers, gpus=one.gpus * workers, memory=one.memory * workers)
    on_event(_reaching())
    with connected(max(cores(), threads_per_lane * workers * (resources.lanes or 1))), asked_to_stop() as stop:
        growing = named_address() is not None  # a cluster; a machine's own Ray has all it ever will
        _room(whole, growing)  # known before the first job starts
        outcome = Outcome()
        if pooled:
            lanes = min(resources.lanes or _room(one, growing), len(pooled))
            kind = LaneKind(
                body, tuple(warm), one.gpus, threads_per_lane, resources.checkpoint_every, memory=one.memory
            )
            more = growing and resources.lanes is None
            stall = resources.stall_seconds
            pool = Pool(
                kind, ledger, on_event, stop, lease_seconds=lease_seconds, stall_seconds=stall, growing=more
            )
            outcome = pool.run(pooled, lanes=lanes, tries=resources.retries + 1)
        if grouped:
            from orchestration.lanes.worker_group import launch_groups

            lanes = resources.lanes or _room(whole, growing)
            later = launch_groups(grouped, ledger, resources, on_event, stop, body, threads_per_lane, lanes)
            outcome = Outcome(
                finished=outcome.finished + later.finished,
                failed={**outcome.failed, **later.failed},
                stopped=outcome.stopped or later.stopped,
            )
        return outcome


def serve(
    open_source: Callable[[int], AbstractContextManager[JobSource]],
    *,
    at_once: int,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.lanes.lane:execute",
    warm: Sequence[str] = WARM,
) -> Outcome:
    """Execute jobs as they are asked for, in pooled lanes that keep no models, until the source has no more.

    at_once: the most runs that can be asked for at a time; there are no more lanes than that. open_source is told
    how many there are, once Ray is there. Otherwise as `launch`.
    """
    on_event(_reaching())
    with connected(max(cores(), resources.lanes or 1)), asked_to_stop() as stop:
        one = RunShare(cpus=1, gpus=resources.gpus_per_worker, memory=resources.memory_per_worker)
        room = _room(one, named_address() is not None)
        lanes = min(resources.lanes or room, at_once)
        kind = LaneKind(
            body, tuple(warm), one.gpus, one.cpus, resources.checkpoint_every, memory=one.memory, models=False
        )
        stall = resources.stall_seconds
        pool = Pool(kind, ledger, on_event, stop, lease_seconds=LEASE_SECONDS, stall_seconds=stall)
        with open_source(lanes) as source:
            return pool.run((), lanes=lanes, tries=resources.retries + 1, source=source)


def _reaching() -> Preparing:
    """Joining a cluster and starting a Ray of one's own take seconds each."""
    address = named_address()
    return Preparing(what=f"joining Ray at {address}" if address else "starting Ray")


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets within the block; the second signal raises KeyboardInterrupt."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread alone
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        os.write(2, (FRESH_LINE if os.isatty(2) else b"") + STOPPING)  # a signal's handler may not print

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _room(share: RunShare, growing: bool) -> int:
    """How many runs of this size fit at a time. Where none does, 1 if the cluster may grow, else StudyError."""
    room = runs_that_fit(share)
    if room < 1 and growing:
        return 1
    if room < 1:
        raise StudyError(
            f"resources: a run needs {share.words}, and Ray has no such room\n"
            f"  accepted: fewer `workers_per_run`, other `gpus_per_run`, less `memory_gib_per_run`, or a cluster "
            f"with as much"
        )
    return room
