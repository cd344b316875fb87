"""Nothing is silent: what takes longer than a person waits without a word is said. Quick to import."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PREPARING = "preparing the encoders and the data"
JUDGING = "judging what the ledger holds"
DRAWING = "drawing the report"
SILENT_SECONDS = 1.0


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what is done within the block, once it has taken a second."""
    timer = threading.Timer(SILENT_SECONDS, print, (f"{what} …",), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
