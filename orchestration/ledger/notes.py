"""The small files of a ledger beside its entries: failures, leases, locks, claims, points. Read with suspicion.

Those that say what was claimed, tried and seen hold the digest of what they say, and of where: see `sealed`.
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
NUMBER = re.compile(r"[1-9][0-9]{0,8}")  # what is named so is ours; systems leave other files
IN_ORDER = re.compile(r"(0|[1-9][0-9]{0,8})\.json")


class LedgerError(StudyError):
    """A file of the ledger is damaged: the message names it and what mends it."""


class LaterFormat(LedgerError):
    """A later semray wrote an entry: nothing is wrong with it, and nothing of it is to be done again."""


def sealed(body: Mapping[Any, Any], name: str) -> bytes:
    """A JSON object as the file of this name, with the digest of both: two files cannot change places unseen."""
    plain = json.loads(json.dumps(dict(body)))
    return json.dumps({**plain, DIGEST: _digest(plain, name)}, indent=1).encode()


def _digest(body: Mapping[str, Any], name: str = "") -> str:
    return hashlib.sha256(f"{name}{json.dumps(body, sort_keys=True)}".encode()).hexdigest()


def read_note(storage: Storage, name: str, remedy: str) -> dict[str, Any]:
    """A JSON object, without its seal. Old notes have none, or one that does not cover their name.

    FileNotFoundError when there is none; LedgerError, with the remedy, for anything else, and for one that does
    not say what was sealed.
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
    """What is made of a JSON object's fields. As `read_note`; LedgerError too where the fields make that fail."""
    content = read_note(storage, name, remedy)
    with whole(storage, name, remedy):
        return made(content)


def note_if_there(storage: Storage, name: str, remedy: str, made: Callable[[dict[str, Any]], T]) -> T | None:
    """As `note_as`; None where there is no such file."""
    try:
        return note_as(storage, name, remedy, made)
    except FileNotFoundError:
        return None


def is_of_a_run(name: str) -> bool:
    """Whether a file is named as what is noted of one run."""
    return name.endswith(".json") and RUN_ID.fullmatch(name.removesuffix(".json")) is not None


def read_in_order(storage: Storage, folder: str, remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What `0.json`, `1.json` and so on hold, each with its place. LedgerError where one is missing before others.

    Each is asked for by name: one that is written while the folder is listed may be left out of the list.
    """
    numbers = [int(match[1]) for name in storage.children(folder) if (match := IN_ORDER.fullmatch(name))]
    last = max(numbers, default=-1)
    for place in (f"{folder}/{number}.json" for number in range(last + 1)):
        try:
            yield place, read_note(storage, place, remedy)
        except FileNotFoundError:
            raise damaged(storage, place, f"it is missing, and {last}.json is there", remedy) from None


def whole(storage: Storage, name: str, remedy: str) -> AbstractContextManager[None]:
    """As `whole_or`, of a note."""
    return whole_or(partial(damaged, storage, name, remedy=remedy))


@contextmanager
def whole_or(damage: Callable[[str], LedgerError]) -> Iterator[None]:
    """The error that `damage` makes of why, for whatever a file's fields make fail within the block."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise damage(f"it lacks or adds fields ({error})") from None


def damaged(storage: Storage, name: str, why: str, remedy: str) -> LedgerError:
    return LedgerError(f"{storage.url}/{printable(name)}: {printable(why)}\n  accepted: {remedy}")


def now() -> str:
    """The moment as notes have it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
