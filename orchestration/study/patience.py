"""Nothing is silent: what takes longer than a person waits without a word is said. Quick to import."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def said_after(seconds: float, words: str) -> Iterator[None]:
    """Say these words on stderr, once the block has taken so long."""
    timer = threading.Timer(seconds, print, (words,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
