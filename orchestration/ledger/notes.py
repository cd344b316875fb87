"""The small files of a ledger beside its entries: failures, leases, locks, claims, points. Read with suspicion."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orchestration.ledger.storage import Storage
from orchestration.study.errors import StudyError

NUMBER = re.compile(r"[0-9]{1,9}")  # what is named so is ours; systems leave other files


class LedgerError(StudyError):
    """A file of the ledger is damaged: the message names it and what mends it."""


def read_note(storage: Storage, name: str, remedy: str) -> dict[str, Any]:
    """A JSON object. FileNotFoundError when there is none; LedgerError, with the remedy, for anything else."""
    try:
        content = json.loads(storage.read(name))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error or type(error).__name__
        raise damaged(storage, name, f"it is not readable as JSON ({why})", remedy) from None
    if not isinstance(content, dict):
        raise damaged(storage, name, "it holds no JSON object", remedy)
    return content


@contextmanager
def whole(storage: Storage, name: str, remedy: str) -> Iterator[None]:
    """LedgerError that names the file, for whatever its fields make fail within the block."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise damaged(storage, name, f"it lacks or adds fields ({error})", remedy) from None


def damaged(storage: Storage, name: str, why: str, remedy: str) -> LedgerError:
    return LedgerError(f"{storage.url}/{name}: {why}\n  accepted: {remedy}")
