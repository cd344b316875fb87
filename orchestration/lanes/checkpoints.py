"""Where a lane keeps checkpoints: beside its ledger, or with a copy of the newest in it where that is remote."""

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
    """A folder of this machine that only this person reads and writes, to be made; older attempts' are removed.

    Its own even where machines share one place for such files. Several ledgers may want the same run, each with a
    folder of its own. The name is the same for all of a machine's workers of a group, hence easy to guess, and the
    place is open to all: StudyError when somebody else took it.
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
    """The folder for an attempt's checkpoints, with what the attempt before it left, and its `World.save`.

    Beside a local ledger it lies there. With a remote one it is this machine's own, and the newest checkpoint is
    copied into the ledger whenever one was saved, and when the attempt ends before its run does.
    """
    if (beside := ledger.scratch(run_id, attempt)) is not None:
        yield beside, None
        return
    folder = private(ledger, run_id, attempt)
    shutil.rmtree(folder, ignore_errors=True)  # of a ledger that was emptied since, and began to count anew
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
    """Bytes and time of the last change of every file."""
    files = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (found.st_size, found.st_mtime_ns) for path, found in files.items()}
