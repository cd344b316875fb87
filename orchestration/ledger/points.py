"""The points that a search suggested, in order: one file each, written before the point's first run.

And the runs that it ended early: one file each, with the development scores up to there by step. And what the
search had come to when it was last asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from orchestration.ledger.notes import damaged, read_note, sealed, whole
from orchestration.ledger.storage import Storage

REMEDY = (
    "the file as the search wrote it; put it back from a copy, or delete the search's folder: it begins anew, and "
    "its finished runs are kept"
)
LOOK_AGAIN = "without this file the search looks itself whether something is left to run: delete it"
POINT = re.compile(r"(0|[1-9][0-9]{0,8})\.json")
SEARCH = re.compile(r"[0-9a-f]{16}")
STOPPED = re.compile(r"([0-9]+)-([0-9]+)\.stopped\.json")
OUTCOME = "outcome.json"


def suggest(storage: Storage, study: str, search: str, number: int, point: Mapping[str, Any]) -> None:
    """Write a point down. One that is there already stays: a search that goes on suggests it again."""
    with suppress(FileExistsError):
        storage.create(f"{_folder(study, search)}/{number}.json", sealed(point))


def suggested(storage: Storage, study: str, search: str) -> list[dict[str, Any]]:
    """All points, in their order. LedgerError where one is missing before others, or damaged."""
    folder = _folder(study, search)
    numbers = sorted(int(match[1]) for name in storage.children(folder) if (match := POINT.fullmatch(name)))
    if lacking := sorted(set(range(len(numbers))) - set(numbers)):
        why = f"it is missing, and {numbers[-1]}.json is there"
        raise damaged(storage, f"{folder}/{lacking[0]}.json", why, REMEDY)
    return [read_note(storage, f"{folder}/{number}.json", REMEDY) for number in numbers]


def searches(storage: Storage, study: str) -> list[str]:
    """The ids of a study's searches."""
    return [name for name in storage.children(_folder(study, "").rstrip("/")) if SEARCH.fullmatch(name)]


def stop(storage: Storage, study: str, search: str, number: int, seed: int, looks: Mapping[int, float]) -> None:
    """Write down that a point's run was ended early."""
    storage.write(f"{_folder(study, search)}/{number}-{seed}.stopped.json", sealed(looks))


def stopped(storage: Storage, study: str, search: str) -> dict[tuple[int, int], dict[int, float]]:
    """What was ended early: (number of the point, seed) -> step -> score."""
    folder, found = _folder(study, search), {}
    for name in storage.children(folder):
        if match := STOPPED.fullmatch(name):
            looks = read_note(storage, f"{folder}/{name}", REMEDY)
            with whole(storage, f"{folder}/{name}", REMEDY):
                found[int(match[1]), int(match[2])] = {int(step): float(score) for step, score in looks.items()}
    return found


def keep_outcome(storage: Storage, study: str, search: str, outcome: Mapping[str, Any]) -> None:
    """Write down what a search has come to, in place of what it had come to before."""
    storage.write(f"{_folder(study, search)}/{OUTCOME}", sealed(outcome))


def outcome(storage: Storage, study: str, search: str) -> dict[str, Any] | None:
    """What a search had come to when it was last asked for; None before that. LedgerError for a damaged file."""
    try:
        return read_note(storage, f"{_folder(study, search)}/{OUTCOME}", LOOK_AGAIN)
    except FileNotFoundError:
        return None


def _folder(study: str, search: str) -> str:
    return f".searches/{quote(study, safe='')}/{search}"
