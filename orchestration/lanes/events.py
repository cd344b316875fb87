"""The events of lanes while a study runs, and the outcome at the end."""

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
    """A preparation before the first run takes a while; what: in words, such as "starting Ray"."""

    what: str


@dataclass(frozen=True, kw_only=True)
class LaneReady:
    """A lane is ready for work; seconds since it was requested."""

    lane: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Runs have to wait; what: for what, in words. Sent once for each reason."""

    what: str


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """A lane got a run."""

    run: Run
    lane: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class RunMoved:
    """The progress of a run, about once a second."""

    run: Run
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class RunLooked:
    """A run scored development data during training. May be sent more than once for the same step."""

    run: Run
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """A run is in the ledger. seconds: of work in this attempt; 0 if another driver did it."""

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
