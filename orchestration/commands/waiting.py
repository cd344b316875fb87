"""What a command says that it is at, once that has taken a second. Quick to import."""

from __future__ import annotations

from contextlib import AbstractContextManager

from orchestration.study.patience import print_after

PREPARING = "preparing the encoders and the data"
JUDGING = "judging what the ledger holds"
DRAWING = "drawing the report"
SILENT_SECONDS = 1.0


def doing(what: str) -> AbstractContextManager[None]:
    """Say what is done within the block, once it has taken a second."""
    return print_after(SILENT_SECONDS, f"{what} …")
