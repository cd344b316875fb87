"""May this be written? Asked before the work whose result goes there; `written_to` tells what turns out later."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from orchestration.study.errors import StudyError, written_to


def file_fits(path: Path) -> None:
    """StudyError where no file can be put: a new one, or one over an older one. A device is never replaced."""
    with written_to(path):
        if _is_there(path) and not path.is_file():
            raise StudyError(f"{path}: is no file\n  accepted: a file, new or to be replaced")
        _try(path, path.absolute().parent)


def folder_fits(path: Path) -> None:
    """StudyError where no files can be put into a folder, be it there or not."""
    with written_to(path):
        if _is_there(path) and not path.is_dir():
            raise StudyError(f"{path}: is no folder\n  accepted: a folder, new or there already")
        _try(path, path.absolute())


def check_empty(folder: Path) -> None:
    """StudyError where something is in the way of what will be a folder of its own."""
    if folder.exists() and any(folder.iterdir()):
        raise StudyError(f"{folder}: exists already\n  accepted: a folder that does not exist, or an empty one")


def new_folder(text: str) -> Path:
    """The folder that a person wrote, with `~` as the home it stands for. StudyError as `folder_fits`."""
    if not text.strip():
        raise StudyError(f"{text!r}: names no folder\n  accepted: a folder")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise StudyError(f"{text}: nobody of that name has a home here\n  accepted: a folder") from None
    folder_fits(path)
    return path


def _is_there(path: Path) -> bool:
    """As `os.path.lexists`, which takes a name that no machine accepts for one that is free."""
    with suppress(FileNotFoundError):
        path.lstat()
        return True
    return False


def _try(path: Path, folder: Path) -> None:
    """Make a file without a name in the folder, or the first above it that is there. Modes tell less: a read-only
    disk has those of another."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        TemporaryFile(dir=there).close()
    except OSError as error:
        raise StudyError(
            f"{path}: nothing can be written in {there} ({error.strerror})\n"
            "  accepted: a place that may be written and has room"
        ) from error
