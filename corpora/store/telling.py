"""Who hears how far long work is: a function of words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[str], None]
HowFar = Callable[[int], None]  # takes the number of texts, steps, … done by now
SHORT_SECONDS = 60.0  # of less nobody needs to hear


def unheard(words: str) -> None:
    """For nobody."""


_LISTENER: ContextVar[Tell] = ContextVar("listener", default=unheard)


@contextmanager
def heard_by(listener: Tell) -> Iterator[None]:
    """Within the block this listener hears what is said `aloud`."""
    before = _LISTENER.get()
    _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.set(before)


def aloud(words: str) -> None:
    """For whoever listens here: a terminal, or a run that would be ended if it said nothing for long."""
    _LISTENER.get()(words)


def counted(doing: str, many: int, tell: Tell) -> Callable[[int], None]:
    """A function to call with the number of texts, pairs, … done since its last call.

    It tells how many of so many are done, and the time left.
    """
    began, done = time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        left = (time.monotonic() - began) * (many - done) / done
        time_left = f", {left / 60:,.0f} min left" if left > SHORT_SECONDS else ""
        tell(f"{doing}, {done:,} of {many:,} done{time_left}")

    return count
