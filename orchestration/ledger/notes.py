"""Reads and writes the small JSON files ("notes") of a ledger beside its entries: failures, locks, claims, points.

Notes on claims, searches and failures hold a digest of their content and place (`sealed`); reading checks it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from orchestration.ledger.storage import Storage
from orchestration.study.errors import StudyError
from orchestration.study.names import printable
from orchestration.study.run import RUN_ID

T = TypeVar("T")

DIGEST = "sha256"
NUMBER = re.compile(r"[1-9][0-9]{0,8}")  # file names that are ours; operating systems leave other files
IN_ORDER = re.compile(r"(0|[1-9][0-9]{0,8})\.json")


class LedgerError(StudyError):
    """A file of the ledger is damaged; the message names the file and a remedy."""


class LaterFormat(LedgerError):
    """An entry was written by a later semray: it is not damaged, and must not be computed again."""


def sealed(body: Mapping[Any, Any], name: str) -> bytes:
    """A JSON object as the content of the file `name`, with a digest of both, so that exchanged files show."""
    plain = json.loads(json.dumps(dict(body)))
    return json.dumps({**plain, DIGEST: _digest(plain, name)}, indent=1).encode()


def _digest(body: Mapping[str, Any], name: str = "") -> str:
    return hashlib.sha256(f"{name}{json.dumps(body, sort_keys=True)}".encode()).hexdigest()


def read_note(storage: Storage, name: str, remedy: str) -> dict[str, Any]:
    """The JSON object of a note, without its digest. Old notes have no digest, or one that leaves out their name.

    Raises FileNotFoundError if there is no such file; LedgerError, with the remedy, if it is no JSON object or
    does not match its digest.
    """
    try:
        content = json.loads(storage.read(name))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error or type(error).__name__
        raise damaged(storage, name, f"it is not readable as JSON ({why})", remedy) from None
    if not isinstance(content, dict):
        raise damaged(storage, name, "it holds no JSON object", remedy)
    digest = content.pop(DIGEST, None)
    if digest not in (None, _digest(content, name), _digest(content)):
        raise damaged(storage, name, "it is not as it was written: its digest is not the sealed one", remedy)
    return content


def note_as(storage: Storage, name: str, remedy: str, made: Callable[[dict[str, Any]], T]) -> T:
    """Apply `made` to a note's JSON object. Raises as `read_note`; LedgerError if `made` fails on it."""
    content = read_note(storage, name, remedy)
    with whole(storage, name, remedy):
        return made(content)


def note_if_there(storage: Storage, name: str, remedy: str, made: Callable[[dict[str, Any]], T]) -> T | None:
    """As `note_as`, but None if there is no such file."""
    try:
        return note_as(storage, name, remedy, made)
    except FileNotFoundError:
        return None


def is_of_a_run(name: str) -> bool:
    """True for the file name of a note on one run."""
    return name.endswith(".json") and RUN_ID.fullmatch(name.removesuffix(".json")) is not None


def read_in_order(storage: Storage, folder: str, remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and content of `0.json`, `1.json` and so on. LedgerError if one before the last is missing.

    All numbers up to the last are read by name, as a listing may lack a file written meanwhile.
    """
    numbers = [int(match[1]) for name in storage.children(folder) if (match := IN_ORDER.fullmatch(name))]
    last = max(numbers, default=-1)
    for place in (f"{folder}/{number}.json" for number in range(last + 1)):
        try:
            yield place, read_note(storage, place, remedy)
        except FileNotFoundError:
            raise damaged(storage, place, f"it is missing, and {last}.json is there", remedy) from None


def whole(storage: Storage, name: str, remedy: str) -> AbstractContextManager[None]:
    """`whole_or` for a note."""
    return whole_or(partial(damaged, storage, name, remedy=remedy))


@contextmanager
def whole_or(damage: Callable[[str], LedgerError]) -> Iterator[None]:
    """Turn errors within the block, caused by a file's fields, into the error that `damage(why)` returns."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise damage(f"it lacks or adds fields ({error})") from None


def damaged(storage: Storage, name: str, why: str, remedy: str) -> LedgerError:
    return LedgerError(f"{storage.url}/{printable(name)}: {printable(why)}\n  accepted: {remedy}")


def now() -> str:
    """The current time for notes: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
