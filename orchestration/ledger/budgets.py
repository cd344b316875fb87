"""What a chain of questions has spent: one file for each, in order, each holding the digest of the one before.

A question that was asked keeps its answer: asked again, it spends nothing and is told the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from urllib.parse import quote

from orchestration.ledger.notes import damaged, now, read_in_order, whole
from orchestration.ledger.storage import Storage
from orchestration.study.errors import StudyError
from orchestration.study.names import NAME_WORDS, cut, is_path_component, printable

REMEDY = "the file as it was written when the question was asked; put it back from a copy"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """One question. says: what was claimed, whatever it is called. level: what p was held against."""

    study: str
    claim: str
    says: str
    p: float
    level: float
    shown: bool
    asked_at: str = ""
    before: str = ""  # digest of the question before it


def ask(storage: Storage, budget: str, answer: Callable[[Sequence[Spent]], Spent]) -> Spent:
    """Write a question down as the next one, with the answer that those before it leave room for.

    A question that says the same as an earlier one is not asked again: the earlier answer is returned. Two that
    ask at one time come one after the other.
    """
    while True:
        earlier = asked(storage, budget)
        new = answer(earlier)
        known = next((one for one in earlier if one.says == new.says), None)
        if known is not None:
            return known
        told = asdict(new) | {"asked_at": now(), "before": _digest(earlier[-1]) if earlier else ""}
        with suppress(FileExistsError):
            storage.create(f"{_folder(budget)}/{len(earlier)}.json", json.dumps(told, indent=1).encode())
            return Spent(**told)


def asked(storage: Storage, budget: str) -> list[Spent]:
    """All questions, in order. LedgerError for a file that is missing, damaged or was altered since."""
    found: list[Spent] = []
    for place, body in read_in_order(storage, _folder(budget), REMEDY):
        with whole(storage, place, REMEDY):
            one = Spent(**body)
            kept = 0 <= float(one.p) <= 1 and 0 < float(one.level) < 1 and one.shown is (one.p <= one.level)
        if not kept or one.before != (_digest(found[-1]) if found else ""):
            raise damaged(storage, place, "it, or the question before it, was altered", REMEDY)
        found.append(one)
    return found


def _digest(one: Spent) -> str:
    return hashlib.sha256(json.dumps(asdict(one), sort_keys=True).encode()).hexdigest()


def _folder(budget: str) -> str:
    """StudyError for a name under which no folder can lie, such as `..`."""
    place = quote(budget, safe="", errors="replace")
    if not budget.isprintable() or not is_path_component(place):
        raise StudyError(f"budget {cut(printable(budget), 60)}\n  accepted: {NAME_WORDS}")
    return f".budgets/{place}"
