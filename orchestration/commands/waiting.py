"""Messages about steps of a command that take longer than a second. Quick to import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from corpora.store.telling import heard_by
from orchestration.study.patience import print_after

PREPARING = "preparing the encoders and the data"
JUDGING = "judging what the ledger holds"
TIDYING = "deleting models that the study does not keep"
DRAWING = "drawing the report"
SILENT_SECONDS = 1.0
TELL_SECONDS = 10.0  # between two lines about how far long work is


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Print what the block does if it takes longer than a second, and then now and then how far it is."""
    with print_after(SILENT_SECONDS, f"{what} …"), heard_by(_now_and_then()):
        yield


def _now_and_then() -> Callable[[str], None]:
    """A function that prints the words it is called with on stderr, and leaves out those that come too soon."""
    next_at = time.monotonic() + SILENT_SECONDS

    def tell(words: str) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + TELL_SECONDS
            print(words, file=sys.stderr, flush=True)

    return tell
