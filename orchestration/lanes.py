"""Where runs execute: pooled lanes for runs of one worker, Ray Train worker groups for larger ones.

A pooled lane is a long-lived actor: it imports torch once and executes job after job, so a run costs what it
computes. The driver hands out jobs with a fencing number per run, asks every lane about once a second how far it
is, and commits what lanes have staged. The answer is the renewal of a lane's lease: a lane that dies or stays
silent is replaced, and its job is leased again under a higher number.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from orchestration.cluster import connected, cores, lanes_that_fit
from orchestration.errors import StudyError
from orchestration.events import (
    Event,
    LaneReady,
    Outcome,
    RunFailed,
    RunFinished,
    RunMoved,
    RunStarted,
)
from orchestration.launcher import launcher
from orchestration.pool import LaneKind, Pool, Source

if TYPE_CHECKING:
    from orchestration.lane import Body
    from orchestration.ledger import Ledger
    from orchestration.run import Job
    from orchestration.schema import Resources

__all__ = ["Event", "LaneReady", "Outcome", "RunFailed", "RunFinished", "RunMoved", "RunStarted", "launch"]

LEASE_SECONDS = 60.0  # a lane that answers nothing for so long is replaced
WARM = ("torch", "transformers", "deepspeed", "trainers.engine")  # what every run imports, paid once per lane


def launch(
    jobs: Sequence[Job],
    *,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.execute:execute",
    warm: Sequence[str] = WARM,
    threads_per_lane: int = 1,
    lease_seconds: float = LEASE_SECONDS,
) -> Outcome:
    """Execute the jobs and commit every result to the ledger; call it while driving the study.

    Jobs for pooled lanes come first, then those for worker groups.
    Runs that the ledger holds already are not done again. A run that fails is recorded with its traceback and
    tried again `resources.retries` times, unless its error is certain to come back. SIGINT or SIGTERM ends the
    launch after what is staged has been committed; a second one ends it at once.
    Raises StudyError when Ray cannot be started or has no room for one lane.
    """
    if not jobs:
        return Outcome()
    pooled = [job for job in jobs if launcher(job, resources) == "pool"]
    grouped = [job for job in jobs if launcher(job, resources) == "train"]
    workers, gpus = resources.workers_per_run if grouped else 1, resources.gpus_per_run / resources.workers_per_run
    with connected(max(cores(), threads_per_lane * workers * (resources.lanes or 1))), asked_to_stop() as stop:
        _room(threads_per_lane * workers, gpus * workers)  # known before the first job starts
        outcome = Outcome()
        if pooled:
            lanes = min(resources.lanes or _room(threads_per_lane, gpus), len(pooled))
            kind = LaneKind(body, tuple(warm), gpus, threads_per_lane, resources.checkpoint_every)
            pool = Pool(kind, ledger, on_event, stop, lease_seconds=lease_seconds)
            outcome = pool.run(pooled, lanes=lanes, tries=resources.retries + 1)
        if grouped:
            from orchestration.train_group import launch_groups

            lanes = resources.lanes or _room(threads_per_lane * workers, gpus * workers)
            later = launch_groups(grouped, ledger, resources, on_event, stop, body, threads_per_lane, lanes)
            outcome = Outcome(
                finished=outcome.finished + later.finished,
                failed={**outcome.failed, **later.failed},
                stopped=outcome.stopped or later.stopped,
            )
        return outcome


def serve(
    open_source: Callable[[int], AbstractContextManager[Source]],
    *,
    ledger: Ledger,
    resources: Resources,
    on_event: Callable[[Event], None],
    body: Body | str = "orchestration.execute:execute",
    warm: Sequence[str] = WARM,
) -> Outcome:
    """Execute jobs as they are asked for, in pooled lanes that keep no models, until the source has no more.

    open_source is told how many runs there is room for at a time, once Ray is there. Otherwise as `launch`.
    """
    with connected(max(cores(), resources.lanes or 1)), asked_to_stop() as stop:
        room = _room(1, resources.gpus_per_run)
        lanes = resources.lanes or room
        kind = LaneKind(body, tuple(warm), resources.gpus_per_run, 1, resources.checkpoint_every, models=False)
        pool = Pool(kind, ledger, on_event, stop, lease_seconds=LEASE_SECONDS)
        with open_source(lanes) as source:
            return pool.run((), lanes=lanes, tries=resources.retries + 1, source=source)


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

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _room(cpus: int, gpus: float) -> int:
    """How many runs of this size fit at a time. Raises StudyError when none does."""
    room = lanes_that_fit(cpus, gpus)
    if room < 1:
        wanted = f"{cpus} CPUs" + (f" and {gpus:g} GPUs" if gpus else "")
        raise StudyError(
            f"resources: a run needs {wanted}, and Ray has no such room\n"
            f"  accepted: fewer `workers_per_run`, other `gpus_per_run`, or a cluster with as much"
        )
    return room
