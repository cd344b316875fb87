"""Where what belongs to a ledger is kept, but not in it: reports, the tracking database."""

from __future__ import annotations

from pathlib import Path


def beside(url: str) -> Path:
    """The folder that holds a local ledger; this folder for one that is elsewhere."""
    return Path() if "://" in url else Path(url).parent
