"""A pool's queue: jobs that wait, jobs that were looked up, and jobs that a lane works on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from orchestration.lanes.waits import Stillness
from orchestration.study.run import Job, Run

if TYPE_CHECKING:
    from orchestration.ledger.drivers import Driver
    from orchestration.ledger.ledger import Ledger


class JobSource(Protocol):
    """Supplies jobs while a pool works. bell: a Ray reference, ready when there are jobs; None at the end."""

    @property
    def bell(self) -> Any: ...

    def jobs(self) -> Sequence[Job]:
        """The jobs for which the bell rang."""
        ...

    def wanted(self, run_id: str) -> bool:
        """False if the result of a run is no longer needed."""
        ...

    def given_up(self, run_id: str) -> bool:
        """A lane has given the run up: whether to execute it anew, as it is needed again."""
        ...


@dataclass
class Queued:
    """A job in the queue: its unfinished runs, the tries left, and the time before which to leave it."""

    runs: tuple[Run, ...]
    tries: int
    not_before: float = 0.0


@dataclass(frozen=True)
class Found:
    """A job's runs as found in the ledger, with attempt numbers if they may begin.

    left: unfinished runs. lacking: by run id, the entries that are missing. elsewhere: by run id, another driver
    that is working on the run.
    """

    left: tuple[Run, ...]
    lacking: dict[str, set[str]]
    elsewhere: dict[str, Driver]
    attempts: dict[str, int]


@dataclass(eq=False)
class Held:
    """A job that a lane works on, with the attempt numbers of its unfinished runs.

    lacking: by run id, the entries that are missing. coming: entries that are being committed. then: functions to
    call once there are none of those. still: how long its lane has made no progress.
    """

    queued: Queued
    attempts: dict[str, int]
    lacking: dict[str, set[str]]
    coming: set[str] = field(default_factory=set)
    then: list[Callable[[], None]] = field(default_factory=list)
    still: Stillness = field(default_factory=Stillness)

    def owed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.queued.runs if run.id in self.attempts)


def due(queue: deque[Queued]) -> Queued | None:
    """Take the first job whose time has come; those before it go to the end of the queue."""
    for _ in range(len(queue)):
        queued = queue.popleft()
        if time.monotonic() >= queued.not_before:
            return queued
        queue.append(queued)
    return None


def looked_up(runs: Sequence[Run], ledger: Ledger) -> Found:
    """Look a job's runs up, and lease the unfinished ones, unless another driver works on any of them.

    Whether a run is finished is looked up after whether anyone works on it, and it is leased only if nobody has
    leased it since: no run is executed twice, whatever another driver begins or ends in between.
    """
    while True:
        newest = {run.id: ledger.newest(run.id) for run in runs}
        others = {run.id: ledger.held_elsewhere(run.id, newest[run.id]) for run in runs}
        held = ledger.held(runs)
        left = tuple(run.remaining(held) for run in runs if run.lacking(held))
        elsewhere = {run.id: other for run in left if (other := others[run.id])}
        attempts = {} if elsewhere else _leased({run.id: newest[run.id] for run in left}, ledger)
        if attempts is not None:
            return Found(left, {run.id: set(run.lacking(held)) for run in left}, elsewhere, attempts)


def _leased(newest: Mapping[str, int], ledger: Ledger) -> dict[str, int] | None:
    """The attempt numbers of runs, all leased; None, and none of them leased, if anyone was faster with one."""
    attempts: dict[str, int] = {}
    try:
        for run_id in sorted(newest):  # in one order: of two drivers that lease the same, one gets all
            attempts[run_id] = ledger.lease_after(run_id, newest[run_id])
    except FileExistsError:
        for run_id, attempt in attempts.items():
            ledger.give_back(run_id, attempt)
        return None
    return attempts
