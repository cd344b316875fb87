"""Attempts at runs: their fencing numbers, in whose name each was leased, and the checkpoints they hand on.

.attempts/<run id>/<n>      one file per lease, created exclusively
.scratch/<run id>.<n>       checkpoints of an attempt that goes on (local ledgers)
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from orchestration.ledger.drivers import Driver
from orchestration.ledger.notes import NUMBER
from orchestration.ledger.storage import LocalStorage, Storage

FOLDER = ".attempts"
SCRATCH = ".scratch"


def lease(storage: Storage, run_id: str, driver: Driver | None) -> int:
    """The next attempt's number. It need not survive a power cut: no older attempt does either."""
    name = json.dumps(driver.to_dict() if driver else None).encode()
    while True:
        attempt = newest(storage, run_id) + 1
        try:
            storage.create(f"{FOLDER}/{run_id}/{attempt}", name, durable=False)
        except FileExistsError:
            continue
        return attempt


def newest(storage: Storage, run_id: str) -> int:
    """The number of the latest attempt that was leased; 0 before the first."""
    names = storage.children(f"{FOLDER}/{run_id}")
    return max((int(name) for name in names if NUMBER.fullmatch(name)), default=0)


def owner(storage: Storage, run_id: str, attempt: int) -> Driver | None:
    """In whose name an attempt was leased; None in nobody's, or when its run was finished since."""
    try:
        fields = json.loads(storage.read(f"{FOLDER}/{run_id}/{attempt}"))
        return None if fields is None else Driver.from_dict(fields)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # a power cut may leave it empty
        return None


def end(storage: Storage, run_id: str, driver: Driver | None) -> None:
    """This driver's lease of a run ends.

    Else a study that lacks the run later, since a person set it aside, would wait for one that is long done.
    """
    attempt = newest(storage, run_id)
    if driver is not None and owner(storage, run_id, attempt) == driver:
        storage.write(f"{FOLDER}/{run_id}/{attempt}", b"null", durable=False)


def scratch(storage: Storage, run_id: str, attempt: int) -> Path | None:
    """An attempt's checkpoints folder, with what the attempt before it left. None unless the ledger is local.

    The folder is renamed from attempt to attempt, so that a paused older one cannot write into it.
    """
    if not isinstance(storage, LocalStorage):
        return None
    place = storage.root / SCRATCH / f"{run_id}.{attempt}"
    earlier = (place.with_name(f"{run_id}.{number}") for number in range(attempt - 1, 0, -1))
    if (latest := next((path for path in earlier if path.is_dir()), None)) is not None:
        latest.rename(place)
    place.mkdir(parents=True, exist_ok=True)
    return place


def clear(storage: Storage, run_id: str) -> None:
    """No attempt's checkpoints stay."""
    if isinstance(storage, LocalStorage):
        for left in (storage.root / SCRATCH).glob(f"{run_id}.*"):
            shutil.rmtree(left, ignore_errors=True)
