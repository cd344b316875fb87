"""What was written survives a power cut: flushed before the name that vouches for it appears."""

from __future__ import annotations

import os
from pathlib import Path


def flush(path: Path) -> None:
    """A file's content, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(draft: Path, place: Path) -> None:
    """A file that was written under another name, put in the place of what was there."""
    flush(draft)
    draft.replace(place)
    flush(place.parent)


def flush_tree(folder: Path) -> None:
    """Every file and folder below, then the folder itself."""
    for path in folder.rglob("*"):
        flush(path)
    flush(folder)
