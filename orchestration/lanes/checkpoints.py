"""The folders of a lane's checkpoints: in a local ledger, or on this machine with a copy in a remote ledger."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.ledger.away import away, words_of
from orchestration.study.errors import StudyError
from orchestration.study.names import slug

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger

log = logging.getLogger(__name__)


def private(ledger: Ledger, run_id: str, attempt: int) -> Path:
    """The path of an attempt's temporary folder on this machine, in a folder that only this user can access.

    The caller makes it; those of older attempts are removed. The path differs by machine, in case machines share
    the place for temporary files, and by ledger. All workers of a group on one machine get the same path, which
    others can guess: raises StudyError if another user has taken the folder.
    """
    mine = Path(tempfile.gettempdir()) / f"semray-{os.getuid()}-{slug(platform.node())}"
    with suppress(FileExistsError):
        mine.mkdir(mode=0o700)
    found = mine.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StudyError(
            f"{mine}: somebody else's, or no folder\n  accepted: none, or TMPDIR naming another place"
        )
    mine.chmod(0o700)
    name = f"{run_id}-{hashlib.sha256(ledger.url.encode()).hexdigest()[:8]}"
    for older in range(1, attempt):
        shutil.rmtree(mine / f"{name}.{older}", ignore_errors=True)
    return mine / f"{name}.{attempt}"


@contextmanager
def scratch_of(
    ledger: Ledger, run_id: str, attempt: int
) -> Iterator[tuple[Path, Callable[[Path, int], None] | None]]:
    """Yield the folder for an attempt's checkpoints, with those of the one before, and its `World.save`.

    The folder is in a local ledger. With a remote ledger it is on this machine, and is copied into the ledger
    whenever a checkpoint was saved, and if the attempt ends early.
    """
    if (beside := ledger.scratch(run_id, attempt)) is not None:
        yield beside, None
        return
    folder = private(ledger, run_id, attempt)
    shutil.rmtree(folder, ignore_errors=True)  # left by the same attempt number, if the ledger was emptied since
    folder.mkdir()
    ledger.checkpoint(run_id, folder)
    copied = _state(folder)

    def keep(*_: object) -> None:
        nonlocal copied
        if (state := _state(folder)) != copied:
            try:
                ledger.keep_checkpoint(run_id, attempt, folder)
                copied = state
            except away() as error:
                log.warning("a checkpoint of run %s is on this machine alone: %s", run_id, words_of(error))

    try:
        yield folder, keep
    except BaseException:
        keep()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _state(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and modification time of every file."""
    files = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (found.st_size, found.st_mtime_ns) for path, found in files.items()}
