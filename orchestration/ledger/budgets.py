"""The questions that a budget was spent on: one file for each, in order, each with the digest of the one before.

A repeated question gets its first answer and spends nothing.
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
    """One question. says: the claim's content without its name. level: the level that p was compared with."""

    study: str
    claim: str
    says: str
    p: float
    level: float
    shown: bool
    asked_at: str = ""
    before: str = ""  # digest of the question before it


def ask(storage: Storage, budget: str, answer: Callable[[Sequence[Spent]], Spent]) -> Spent:
    """Record the next question, with the answer that `answer(earlier questions)` gives; return it.

    If an earlier question says the same, nothing is recorded and that one is returned. Of two processes that ask
    at the same time, one comes first and the other asks again.
    """
    while True:
        earlier = asked(storage, budget)
        new = answer(earlier)
        known = next((question for question in earlier if question.says == new.says), None)
        if known is not None:
            return known
        fields = asdict(new) | {"asked_at": now(), "before": _digest(earlier[-1]) if earlier else ""}
        with suppress(FileExistsError):
            storage.create(f"{_folder(budget)}/{len(earlier)}.json", json.dumps(fields, indent=1).encode())
            return Spent(**fields)


def asked(storage: Storage, budget: str) -> list[Spent]:
    """All questions, in order. Raises LedgerError for a file that is missing, damaged or altered."""
    found: list[Spent] = []
    for place, body in read_in_order(storage, _folder(budget), REMEDY):
        with whole(storage, place, REMEDY):
            question = Spent(**body)
            p, level = float(question.p), float(question.level)
            valid = 0 <= p <= 1 and 0 < level < 1 and question.shown is (question.p <= question.level)
        if not valid or question.before != (_digest(found[-1]) if found else ""):
            raise damaged(storage, place, "it, or the question before it, was altered", REMEDY)
        found.append(question)
    return found


def _digest(question: Spent) -> str:
    return hashlib.sha256(json.dumps(asdict(question), sort_keys=True).encode()).hexdigest()


def _folder(budget: str) -> str:
    """The folder of a budget. Raises StudyError for a name that no folder can have, such as `..`."""
    place = quote(budget, safe="", errors="replace")
    if not budget.isprintable() or not is_path_component(place):
        raise StudyError(f"budget {cut(printable(budget), 60)}\n  accepted: {NAME_WORDS}")
    return f".budgets/{place}"
