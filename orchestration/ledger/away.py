"""A store that does not answer, or lets nobody in, is told apart from what lies in it: here, and nowhere else.

Else an outage would be taken for a damaged file, which a person is told to move away, or for a file that is not
there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpora.store.errors import first_line
from orchestration.study.errors import StudyError

AWAY = {  # what stores raise besides OSError when they do not answer or do not let us in
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "gcsfs.retry": ("HttpError",),
}


class StoreAway(StudyError):
    """A ledger's store failed at what it was asked: it says nothing of any file. It may work another time."""


def unreachable(url: str | Path, error: Exception) -> str:
    """The message for a person, with the store's own words."""
    return (
        f"ledger {url}: {first_line(error)}\n"
        f"  accepted: a folder that may be written and has room, or a URL such as s3://bucket/ledger, with the "
        f"package for it installed (for s3://, pip install 'semray[s3]') and its credentials set"
    )


def away() -> tuple[type[Exception], ...]:
    """What a store raises that cannot be reached; of libraries that are not loaded, nothing."""
    loaded = ((sys.modules.get(module), names) for module, names in AWAY.items())
    return (OSError, StoreAway, *(getattr(module, name) for module, names in loaded if module for name in names))


@contextmanager
def answered(url: str | Path, *answers: type[Exception]) -> Iterator[None]:
    """Raise StoreAway where the store fails within the block. answers: what it may raise that is none of that."""
    told: tuple[type[Exception], ...] = (StoreAway, *answers)
    try:
        yield
    except told:
        raise
    except away() as error:
        raise StoreAway(unreachable(url, error)) from error


def words_of(error: Exception) -> str:
    """What the store itself said."""
    return first_line(error.__cause__ if isinstance(error, StoreAway) and error.__cause__ else error)


class Answering:
    """A filesystem of fsspec whose methods raise StoreAway where the store fails.

    That a name is there, is not, or is a folder's is an answer.
    """

    def __init__(self, filesystem: Any, url: str) -> None:
        self._filesystem, self._url = filesystem, url

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copying and pickling look for first
            raise AttributeError(name)
        method = getattr(self._filesystem, name)

        @functools.wraps(method)
        def asked(*given: Any, **named: Any) -> Any:
            with answered(self._url, FileNotFoundError, FileExistsError, IsADirectoryError):
                return method(*given, **named)

        return asked
