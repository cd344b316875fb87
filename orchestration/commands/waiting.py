"""Messages about steps of a command that take longer than a second. Quick to import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from orchestration.study.patience import print_after

PREPARING = "preparing the encoders and the data"
JUDGING = "judging what the ledger holds"
DRAWING = "drawing the report"
SILENT_SECONDS = 1.0
TELL_SECONDS = 10.0  # between two lines about how far long work is


def doing(what: str) -> AbstractContextManager[None]:
    """Print what the block does if it takes longer than a second."""
    return print_after(SILENT_SECONDS, f"{what} …")


def now_and_then() -> Callable[[str], None]:
    """A function that prints the words it is called with on stderr, and leaves out those that come too soon."""
    printed = float("-inf")

    def tell(words: str) -> None:
        nonlocal printed
        if time.monotonic() - printed >= TELL_SECONDS:
            printed = time.monotonic()
            print(words, file=sys.stderr, flush=True)

    return tell
