"""The points that a search suggested, in order: one file each, written before the point's first run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from orchestration.storage import Storage


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
        points.append(json.loads(storage.read(f"{folder}/{len(points)}.json")))
    return points


def _folder(study: str, search: str) -> str:
    return f".searches/{quote(study, safe='')}/{search}"
