"""What is waited for, and for how long: whoever waits says for what, and nothing is waited for without end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestration.lanes.events import Event, Waiting
from orchestration.lanes.progress import duration

if TYPE_CHECKING:
    from orchestration.ledger.drivers import Driver
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from trainers.engine.world import Progress

POLL_SECONDS = 1.0  # how often lanes and groups are asked how far they are
START_SECONDS = 600.0  # for the first lane or worker to be there: a cluster may have to start machines
SAID_SECONDS = 30.0  # for the same, until it is said what is waited for
WIND_DOWN_SECONDS = 30.0  # for the running steps to end after the driver was asked to stop
LONGEST_GAP = 3 * POLL_SECONDS  # what counts of the time between two answers


class Stillness:
    """For how long somebody has said nothing new, counted from answer to answer.

    A machine that slept or a driver that was stopped in between has not heard what was said meanwhile: of a longer
    time without an answer only `LONGEST_GAP` counts.
    """

    def __init__(self) -> None:
        self.seconds, self._heard, self._at, self._warned = 0.0, "", time.monotonic(), False

    def hear(self, words: str) -> float:
        """Take an answer; returns the seconds since it was another one."""
        now = time.monotonic()
        if words != self._heard:
            self.seconds, self._heard, self._warned = 0.0, words, False
        else:
            self.seconds += min(now - self._at, LONGEST_GAP)
        self._at = now
        return self.seconds

    def worth_a_word(self, limit: float) -> bool:
        """True once, when half of the time is over that it may last."""
        if self._warned or self.seconds < limit / 2:
            return False
        self._warned = True
        return True


class Elsewhere:
    """Runs that another living driver is at, whose results are waited for. Each such driver is told of once."""

    def __init__(self, ledger: Ledger, on_event: Callable[[Event], None]) -> None:
        self._ledger, self._on_event = ledger, on_event
        self._told: set[Driver] = set()

    def holds(self, run: Run) -> bool:
        """Whether somebody else is at this run."""
        return self.tell(run, self._ledger.held_elsewhere(run.id))

    def tell(self, run: Run, driver: Driver | None) -> bool:
        """As `holds`, where it is known who is at the run."""
        if driver is not None and driver not in self._told:
            self._told.add(driver)
            what = f"waiting for process {driver.pid} on {driver.host}, which is at {run.label} for {driver.study}"
            self._on_event(Waiting(what=what))
        return driver is not None


def place_of(progress: Progress | None) -> str:
    """Where a run was when it was last heard of, in words."""
    if progress is None:
        return "before its first word"
    return progress.doing or f"after step {progress.step} of {progress.steps}"


def still_words(run: Run, seconds: float, place: str, limit: float) -> str:
    """A run has not come further for a while, and what will come of that."""
    return f"{run.label}: nothing new for {duration(seconds)}, last {place}; it is ended after {duration(limit)}"


def stalled_words(who: str, limit: float, places: str) -> str:
    """Why a run was ended."""
    setting = f"`resources.stall_minutes`: {limit / 60:g}"
    return f"{who} stood still for {duration(limit)} ({setting}); last heard: {places}"


def unasked_words(limit: float) -> str:
    """Why a search was ended that asked for no run."""
    return (
        f"the search asked for no run for {duration(limit)}, with none under way\n"
        f"  accepted: the same command once more, which goes on from here; `ray status` says what room there is"
    )
