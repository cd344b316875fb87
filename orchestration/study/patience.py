"""A message for work that takes longer than a person waits in silence. Quick to import."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def print_after(seconds: float, words: str) -> Iterator[None]:
    """Print these words on stderr if the block takes longer than this."""
    timer = threading.Timer(seconds, print, (words,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
