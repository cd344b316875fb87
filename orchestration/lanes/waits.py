"""Time limits of all waiting, and the messages about it: every wait is announced, and none is without end."""

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

POLL_SECONDS = 1.0  # how often lanes and groups are polled
ELSEWHERE_SECONDS = 5.0  # how often to look whether another driver has finished a run that this one needs too
START_SECONDS = 600.0  # wait for the first lane or worker: a cluster may have to start machines
SAID_SECONDS = 30.0  # after so much of that wait a message says what is waited for
WIND_DOWN_SECONDS = 30.0  # wait for running steps to end after the driver was asked to stop
AFTER_STEP = "after step"  # begins the words about where a run in training is
LONGEST_GAP = 3 * POLL_SECONDS  # at most so much of the time between two answers counts as stillness


class Stillness:
    """Measures for how long the answers of a lane or group have not changed.

    Of a long time between two answers only `LONGEST_GAP` counts, since the driver itself may have slept or been
    stopped.
    """

    def __init__(self) -> None:
        self.seconds, self._last, self._at, self._warned = 0.0, "", time.monotonic(), False

    def hear(self, words: str) -> float:
        """Take an answer, and return the seconds since the answers last changed."""
        now = time.monotonic()
        if words != self._last:
            self.seconds, self._last, self._warned = 0.0, words, False
        else:
            self.seconds += min(now - self._at, LONGEST_GAP)
        self._at = now
        return self.seconds

    def worth_a_word(self, limit: float) -> bool:
        """True, once, when half of the time limit is over."""
        if self._warned or self.seconds < limit / 2:
            return False
        self._warned = True
        return True


class Elsewhere:
    """Finds runs that another living driver is working on, and announces each such driver once."""

    def __init__(self, ledger: Ledger, on_event: Callable[[Event], None]) -> None:
        self._ledger, self._on_event = ledger, on_event
        self._told: set[Driver] = set()

    def holds(self, run: Run) -> bool:
        """True if another driver is working on this run."""
        return self.tell(run, self._ledger.held_elsewhere(run.id))

    def tell(self, run: Run, driver: Driver | None) -> bool:
        """As `holds`, with the result of the look-up: driver is the other driver, or None if there is none."""
        if driver is not None and driver not in self._told:
            self._told.add(driver)
            what = f"waiting for process {driver.pid} on {driver.host}, which is at {run.label} for {driver.study}"
            self._on_event(Waiting(what=what))
        return driver is not None


def place_of(progress: Progress | None) -> str:
    """A run's last known progress, in words."""
    if progress is None:
        return "before its first word"
    return progress.doing or f"{AFTER_STEP} {progress.step} of {progress.steps}"


def still_words(run: Run, seconds: float, place: str, limit: float) -> str:
    """The warning about a run that has made no progress for a while."""
    return f"{run.label}: nothing new for {duration(seconds)}, last {place}; it is ended after {duration(limit)}"


def stalled_words(who: str, limit: float, places: str) -> str:
    """The message when a run is ended for lack of progress."""
    setting = f"`resources.stall_minutes`: {limit / 60:g}"
    return f"{who} stood still for {duration(limit)} ({setting}); last heard: {places}"


def unasked_words(limit: float) -> str:
    """The message when a search is ended that asked for no run."""
    return (
        f"the search asked for no run for {duration(limit)}, with none under way\n"
        f"  accepted: the same command once more, which goes on from here; `ray status` says what room there is"
    )
