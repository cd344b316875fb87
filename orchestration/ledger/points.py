"""The points that a search suggested, in order: one file each, written before the point's first run.

And the runs that it ended early: one file each, with the development scores up to there by step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from orchestration.ledger.notes import read_note, whole
from orchestration.ledger.storage import Storage

REMEDY = (
    "the file as the search wrote it; put it back from a copy, or delete the search's folder: it begins anew, and "
    "its finished runs are kept"
)
STOPPED = re.compile(r"([0-9]+)-([0-9]+)\.stopped\.json")


def suggest(storage: Storage, study: str, search: str, number: int, point: Mapping[str, Any]) -> None:
    """Write a point down. One that is there already stays: a search that goes on suggests it again."""
    with suppress(FileExistsError):
        storage.create(f"{_folder(study, search)}/{number}.json", json.dumps(dict(point)).encode())


def suggested(storage: Storage, study: str, search: str) -> list[dict[str, Any]]:
    """All points from the first on, up to the first number that is not there."""
    folder = _folder(study, search)
    names = set(storage.children(folder))
    points: list[dict[str, Any]] = []
    while f"{len(points)}.json" in names:
        points.append(read_note(storage, f"{folder}/{len(points)}.json", REMEDY))
    return points


def stop(storage: Storage, study: str, search: str, number: int, seed: int, looks: Mapping[int, float]) -> None:
    """Write down that a point's run was ended early."""
    storage.write(f"{_folder(study, search)}/{number}-{seed}.stopped.json", json.dumps(dict(looks)).encode())


def stopped(storage: Storage, study: str, search: str) -> dict[tuple[int, int], dict[int, float]]:
    """What was ended early: (number of the point, seed) -> step -> score."""
    folder, found = _folder(study, search), {}
    for name in storage.children(folder):
        if match := STOPPED.fullmatch(name):
            looks = read_note(storage, f"{folder}/{name}", REMEDY)
            with whole(storage, f"{folder}/{name}", REMEDY):
                found[int(match[1]), int(match[2])] = {int(step): float(score) for step, score in looks.items()}
    return found


def _folder(study: str, search: str) -> str:
    return f".searches/{quote(study, safe='')}/{search}"
