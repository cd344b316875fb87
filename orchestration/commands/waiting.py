"""Messages about steps of a command that take longer than a second. Quick to import."""

from __future__ import annotations

from contextlib import AbstractContextManager

from orchestration.study.patience import print_after

PREPARING = "preparing the encoders and the data"
JUDGING = "judging what the ledger holds"
DRAWING = "drawing the report"
SILENT_SECONDS = 1.0


def doing(what: str) -> AbstractContextManager[None]:
    """Print what the block does if it takes longer than a second."""
    return print_after(SILENT_SECONDS, f"{what} …")
