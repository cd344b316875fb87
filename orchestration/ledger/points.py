"""The points that a search suggested, in order: one file each, written before the point's first run.

And the runs that it ended early: one file each, with the development scores up to there by step. And what the
search had come to when it was last asked for, and what confirmations of its points came to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
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
CONFIRMED = re.compile(r"(0|[1-9][0-9]{0,8})\.confirmed\.json")
CONFIRM_AGAIN = "without this file the confirmation is not spoken of; `semray confirm` writes it again: delete it"


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """What a search had come to when it was last asked for.

    trials, budget: what it was asked for. ended: nothing was left of it to be run. best, point: the best point;
    None and {} without one. table: digest of all points with what their runs came to.
    """

    arm: str
    trials: int
    budget: int
    ended: bool
    best: int | None
    point: Mapping[str, Any]
    table: str


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """What came of a point that was put to the test against what the search began with. confirmed_at: in UTC."""

    treatment: str
    control: str
    metric: str
    verdict: str
    exploratory: bool
    seeds: int
    confirmed_at: str


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


def keep_outcome(storage: Storage, study: str, search: str, outcome: SearchOutcome) -> None:
    """Write down what a search has come to, in place of what it had come to before."""
    storage.write(f"{_folder(study, search)}/{OUTCOME}", sealed(asdict(outcome)))


def outcome(storage: Storage, study: str, search: str) -> SearchOutcome | None:
    """What a search had come to when it was last asked for; None before that. LedgerError for a damaged file."""
    place = f"{_folder(study, search)}/{OUTCOME}"
    try:
        body = read_note(storage, place, LOOK_AGAIN)
    except FileNotFoundError:
        return None
    with whole(storage, place, LOOK_AGAIN):
        return SearchOutcome(**body)


def confirm(storage: Storage, study: str, search: str, number: int, told: Confirmed) -> None:
    """Write down what the confirmation of a point came to, in place of what an earlier one did."""
    storage.write(f"{_folder(study, search)}/{number}.confirmed.json", sealed(asdict(told)))


def confirmed(storage: Storage, study: str, search: str) -> dict[int, Confirmed]:
    """Number of the point -> what its confirmation came to. LedgerError for a damaged file."""
    folder, found = _folder(study, search), {}
    for name in storage.children(folder):
        if match := CONFIRMED.fullmatch(name):
            told = read_note(storage, f"{folder}/{name}", CONFIRM_AGAIN)
            with whole(storage, f"{folder}/{name}", CONFIRM_AGAIN):
                found[int(match[1])] = Confirmed(**told)
    return found


def _folder(study: str, search: str) -> str:
    return f".searches/{quote(study, safe='')}/{search}"
