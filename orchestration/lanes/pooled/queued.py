"""A pool's queue: jobs that wait, and jobs that a lane works on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestration.lanes.waits import Stillness
from orchestration.study.run import Job, Run


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
