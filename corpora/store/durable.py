"""Writes files so that they survive a power cut: content is flushed before its final name appears."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def flush(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(draft: Path, place: Path) -> None:
    """Move a file that was written under another name to its place, and replace any file there."""
    flush(draft)
    draft.replace(place)
    flush(place.parent)


def flush_tree(folder: Path) -> None:
    """Flush every file and folder below, then the folder itself."""
    for path in folder.rglob("*"):
        flush(path)
    flush(folder)


def as_readable_as(folder: Path) -> None:
    """Give the files the folder's permissions, since some libraries write files that only their owner may read."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
