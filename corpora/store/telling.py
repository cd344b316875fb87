"""Who hears how far long work is: a function of words."""

from __future__ import annotations

import time
from collections.abc import Callable

Tell = Callable[[str], None]
SHORT_SECONDS = 60.0  # of less nobody needs to hear


def unheard(words: str) -> None:
    """For nobody."""


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
