"""What lies in a pool's queue, whether it may begin, and what a lane that is at it still owes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from orchestration.lanes.waits import Stillness
from orchestration.study.run import Job, Run

if TYPE_CHECKING:
    from orchestration.ledger.drivers import Driver
    from orchestration.ledger.ledger import Ledger


class JobSource(Protocol):
    """Where jobs come from while a pool works. bell: a Ray reference, ready when there are some; None: no more."""

    @property
    def bell(self) -> Any: ...

    def jobs(self) -> Sequence[Job]:
        """The jobs for which the bell rang."""
        ...

    def wanted(self, run_id: str) -> bool:
        """Whether a run that was asked for is still of use."""
        ...


@dataclass
class Queued:
    """A job in the queue: the runs it still lacks, how often it may be tried, and when it is worth looking at."""

    runs: tuple[Run, ...]
    tries: int
    not_before: float = 0.0


@dataclass(frozen=True)
class Found:
    """What the ledger says of a job's runs, and their attempt numbers if they may begin.

    left: those that owe something. lacking: which entries each of them owes. elsewhere: who else is at them.
    """

    left: tuple[Run, ...]
    lacking: dict[str, set[str]]
    elsewhere: dict[str, Driver]
    attempts: dict[str, int]


@dataclass(eq=False)
class Held:
    """A job that a lane is at, with the attempt numbers of its runs that are not finished yet.

    lacking: the entries that each of those still owes. coming: those that are being committed; then: what is to be
    done when none is. still: for how long its lane has said the same.
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
    """Take the next job that is worth looking at now; those before it go to the end."""
    for _ in range(len(queue)):
        queued = queue.popleft()
        if time.monotonic() >= queued.not_before:
            return queued
        queue.append(queued)
    return None


def looked_up(runs: Sequence[Run], ledger: Ledger) -> Found:
    """Lease what is not done and nobody else is at."""
    held = ledger.held(runs)
    left = tuple(run.remaining(held) for run in runs if run.lacking(held))
    elsewhere = {run.id: other for run in left if (other := ledger.held_elsewhere(run.id))}
    attempts = {} if elsewhere else {run.id: ledger.lease(run.id) for run in left}
    return Found(left, {run.id: set(run.lacking(held)) for run in left}, elsewhere, attempts)
