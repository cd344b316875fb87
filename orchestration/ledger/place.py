"""Where finished runs are kept when a person names no place. Nothing is imported: `semray --help` asks too."""

from __future__ import annotations

import os


def usual_place() -> str:
    """A folder or an fsspec URL."""
    return os.environ.get("SEMRAY_LEDGER") or "ledger"
