"""What was written survives a power cut: flushed before the name that vouches for it appears."""

from __future__ import annotations

import os
import stat
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


def as_readable_as(folder: Path) -> None:
    """Let the umask, by which the folder was made, hold for its files too: libraries write theirs for us alone."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
