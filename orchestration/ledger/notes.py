"""The small files of a ledger beside its entries: failures, leases, locks, claims, points. Read with suspicion.

Those that say what was claimed, tried and seen hold the digest of what they say: see `sealed`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from orchestration.ledger.storage import Storage
from orchestration.study.errors import StudyError
from orchestration.study.names import printable

SEAL = "sha256"
CHANGED = "it is not as it was written: its digest is not the sealed one"
NUMBER = re.compile(r"[1-9][0-9]{0,8}")  # what is named so is ours; systems leave other files


class LedgerError(StudyError):
    """A file of the ledger is damaged: the message names it and what mends it."""


class LaterFormat(LedgerError):
    """A later semray wrote an entry: nothing is wrong with it, and nothing of it is to be done again."""


def sealed(body: Mapping[Any, Any]) -> bytes:
    """A JSON object as a file, with the digest of what it says."""
    plain = json.loads(json.dumps(dict(body)))
    return json.dumps({**plain, SEAL: _digest(plain)}, indent=1).encode()


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_note(storage: Storage, name: str, remedy: str) -> dict[str, Any]:
    """A JSON object, without its seal. Those of before have none.

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
    seal = content.pop(SEAL, None)
    if seal is not None and seal != _digest(content):
        raise damaged(storage, name, CHANGED, remedy)
    return content


@contextmanager
def whole(storage: Storage, name: str, remedy: str) -> Iterator[None]:
    """LedgerError that names the file, for whatever its fields make fail within the block."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise damaged(storage, name, f"it lacks or adds fields ({error})", remedy) from None


def damaged(storage: Storage, name: str, why: str, remedy: str) -> LedgerError:
    return LedgerError(f"{storage.url}/{printable(name)}: {printable(why)}\n  accepted: {remedy}")


def now() -> str:
    """The moment as notes have it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
