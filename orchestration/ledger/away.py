"""Tells failures of the store itself (no answer, no access) from missing and damaged files.

Otherwise an outage would be reported as a damaged file, which a person is told to move away, or as a missing one.
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

AWAY = {  # exceptions, besides OSError, by which stores' libraries report no answer or no access
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "gcsfs.retry": ("HttpError",),
}


class StoreAway(StudyError):
    """A ledger's store failed to answer, which says nothing about any file. A later request may succeed."""


def unreachable(url: str | Path, error: Exception) -> str:
    """The message for a person, with the store's own words."""
    return (
        f"ledger {url}: {first_line(error)}\n"
        f"  accepted: a folder that may be written and has room, or a URL such as s3://bucket/ledger, with the "
        f"package for it installed (for s3://, pip install 'semray[s3]') and its credentials set"
    )


def away() -> tuple[type[Exception], ...]:
    """The exceptions that an unreachable store raises, of the libraries that are loaded."""
    loaded = ((sys.modules.get(module), names) for module, names in AWAY.items())
    return (OSError, StoreAway, *(getattr(module, name) for module, names in loaded if module for name in names))


@contextmanager
def answered(url: str | Path, *answers: type[Exception]) -> Iterator[None]:
    """Turn a store's failures within the block into StoreAway. answers: exceptions that are regular answers."""
    passed_on: tuple[type[Exception], ...] = (StoreAway, *answers)
    try:
        yield
    except passed_on:
        raise
    except away() as error:
        raise StoreAway(unreachable(url, error)) from error


def words_of(error: Exception) -> str:
    """The first line of the store's own message."""
    return first_line(error.__cause__ if isinstance(error, StoreAway) and error.__cause__ else error)


class Answering:
    """Wraps an fsspec filesystem so that its methods raise StoreAway if the store fails.

    FileNotFoundError, FileExistsError and IsADirectoryError are answers and pass through.
    """

    def __init__(self, filesystem: Any, url: str) -> None:
        self._filesystem, self._url = filesystem, url

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # else copying and pickling would take the filesystem's private methods
            raise AttributeError(name)
        method = getattr(self._filesystem, name)

        @functools.wraps(method)
        def request(*given: Any, **named: Any) -> Any:
            with answered(self._url, FileNotFoundError, FileExistsError, IsADirectoryError):
                return method(*given, **named)

        return request
