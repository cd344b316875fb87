"""Checks before long work that its result can be written, and files that appear whole or not at all.

`written_to` reports errors of the writing itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from orchestration.study.errors import StudyError, written_to


def file_fits(path: Path) -> None:
    """Raise StudyError if no file can be written at `path`. An existing file may be replaced, a device never."""
    with written_to(path):
        if _is_there(path) and not path.is_file():
            raise StudyError(f"{path}: is no file\n  accepted: a file, new or to be replaced")
        _try(path, path.absolute().parent)


def folder_fits(path: Path) -> None:
    """Raise StudyError if no files can be written into a folder, which may not exist yet."""
    with written_to(path):
        if _is_there(path) and not path.is_dir():
            raise StudyError(f"{path}: is no folder\n  accepted: a folder, new or there already")
        _try(path, path)


def check_empty(folder: Path) -> None:
    """Raise StudyError if the folder exists and is not empty."""
    if folder.exists() and any(folder.iterdir()):
        raise StudyError(f"{folder}: exists already\n  accepted: a folder that does not exist, or an empty one")


def new_folder(text: str) -> Path:
    """The folder that a person wrote, with `~` expanded. StudyError as in `folder_fits`."""
    if not text.strip():
        raise StudyError(f"{text!r}: names no folder\n  accepted: a folder")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise StudyError(f"{text}: nobody of that name has a home here\n  accepted: a folder") from None
    folder_fits(path)
    return path


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Yield a file beside `path` to write, which takes its place on a clean exit; else nothing is left of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # two processes may write one file at a time
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def nearest_existing(folder: Path) -> Path:
    """The folder, or the nearest existing folder above it, below which it would be created."""
    whole = folder.absolute()
    return next(place for place in (whole, *whole.parents) if place.exists())


def _is_there(path: Path) -> bool:
    """Like `os.path.lexists`, but raises OSError for a name that the machine cannot have."""
    with suppress(FileNotFoundError):
        path.lstat()
        return True
    return False


def _try(path: Path, folder: Path) -> None:
    """Write a temporary file into the folder, or its nearest existing parent. Its mode is not enough to know: a
    read-only disk shows the same ones."""
    there = nearest_existing(folder)
    try:
        TemporaryFile(dir=there).close()
    except OSError as error:
        raise StudyError(
            f"{path}: nothing can be written in {there} ({error.strerror})\n"
            "  accepted: a place that may be written and has room"
        ) from error
