"""What lanes tell of a study while it runs, and what comes out in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.ledger.failures import Failure
    from orchestration.study.run import Run
    from trainers.engine.world import Progress


@dataclass(frozen=True, kw_only=True)
class Preparing:
    """What takes a while before the first run starts: "starting Ray"."""

    what: str


@dataclass(frozen=True, kw_only=True)
class LaneReady:
    """A lane has imported what runs need and takes work; seconds since it was asked for."""

    lane: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What keeps runs from going on, in words; told once of each thing that is waited for."""

    what: str


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """A lane got a run."""

    run: Run
    lane: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class RunMoved:
    """Where a run is, about once a second."""

    run: Run
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class RunLooked:
    """A run scored development data in its middle. It may be told more than once of the same step."""

    run: Run
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """A run is in the ledger; seconds of work in this attempt, 0 when another driver did it meanwhile."""

    run: Run
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RunFailed:
    """An attempt at a run failed. retrying: another attempt follows."""

    run: Run
    message: str
    retrying: bool


Event = Preparing | LaneReady | Waiting | RunStarted | RunMoved | RunLooked | RunFinished | RunFailed


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """finished: ids now in the ledger. failed: runs given up. stopped: asked to end before all was done."""

    finished: tuple[str, ...] = ()
    failed: Mapping[str, Failure] = field(default_factory=dict)
    stopped: bool = False
