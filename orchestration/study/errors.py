"""The errors that are for people: the command prints them without a traceback."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REFUSED = {  # what a machine says of a place that is none to write to, or to read from
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO),
    *(errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE),
}


class StudyError(Exception):
    """A study, a request or its data is wrong; the message says where and what would be accepted. Exit code 2."""


@contextmanager
def written_to(place: Path | str) -> Iterator[None]:
    """StudyError where the machine refuses what is written within the block, at a place that a person named.

    A full disk does not name the file, so `place` does.
    """
    try:
        yield
    except OSError as error:
        raise _refused(error, place) from error


@contextmanager
def refusals_told(place: Path | str) -> Iterator[None]:
    """As `written_to`, around all that a command does: a file that is not there is then a mistake of ours."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED and not isinstance(error, shutil.Error):
            raise
        raise _refused(error, place) from error


def _refused(error: OSError, place: Path | str) -> StudyError:
    said = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror  # of its first file
    return StudyError(f"{error.filename or place}: {said}\n  accepted: a place that may be written and has room")
