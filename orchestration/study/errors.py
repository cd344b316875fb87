"""The errors that are for people: the command prints them without a traceback."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REFUSED = {  # the errors by which a machine refuses to write or read a place
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO),
    *(errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE),
}


class StudyError(Exception):
    """A study, a request or its data is wrong; the message says where and what would be accepted. Exit code 2."""


@contextmanager
def written_to(place: Path | str) -> Iterator[None]:
    """Turn an OSError in the block into a StudyError that names the place a person gave.

    An error of a full disk names no file, so `place` is named.
    """
    try:
        yield
    except OSError as error:
        raise _refused(error, place) from error


@contextmanager
def refusals_as_study_errors(place: Path | str) -> Iterator[None]:
    """Like `written_to` for a whole command. Only REFUSED errors are turned: a missing file is then a bug."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED and not isinstance(error, shutil.Error):
            raise
        raise _refused(error, place) from error


def _refused(error: OSError, place: Path | str) -> StudyError:
    reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror  # of the first file
    accepted = "a place that may be read and written, and has room"
    return StudyError(f"{error.filename or place}: {reason}\n  accepted: {accepted}")
