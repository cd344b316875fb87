"""Attempts at runs: their fencing numbers, the driver that leased each, and the checkpoints that they pass on.

.attempts/<run id>/<n>      one file per lease, created exclusively
.scratch/<run id>.<n>       checkpoints of an attempt that goes on (local ledgers)
.scratch/<run id>/<n>-<k>/  the kth copy of an attempt's checkpoints (remote ledgers)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from orchestration.ledger.drivers import Driver
from orchestration.ledger.notes import NUMBER
from orchestration.ledger.object_storage import MARKER
from orchestration.ledger.storage import LocalStorage, Storage

FOLDER = ".attempts"
SCRATCH = ".scratch"
COPY = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def lease(storage: Storage, run_id: str, driver: Driver | None) -> int:
    """Lease the next attempt, whoever has leased one before, and return its number."""
    while True:
        with suppress(FileExistsError):
            return lease_after(storage, run_id, newest(storage, run_id), driver)


def lease_after(storage: Storage, run_id: str, newest: int, driver: Driver | None) -> int:
    """As `lease`, if the newest attempt is still this one; else FileExistsError.

    Not durable: no older attempt survives a power cut either.
    """
    leased_by = json.dumps(driver.to_dict() if driver else None).encode()
    storage.create(f"{FOLDER}/{run_id}/{newest + 1}", leased_by, durable=False)
    return newest + 1


def newest(storage: Storage, run_id: str) -> int:
    """The number of the latest attempt that was leased; 0 before the first."""
    names = storage.children(f"{FOLDER}/{run_id}")
    return max((int(name) for name in names if NUMBER.fullmatch(name)), default=0)


def owner(storage: Storage, run_id: str, attempt: int) -> Driver | None:
    """The driver that leased an attempt; None if it was leased without one, or if the lease has ended."""
    try:
        fields = json.loads(storage.read(f"{FOLDER}/{run_id}/{attempt}"))
        return None if fields is None else Driver.from_dict(fields)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # a power cut may leave it empty
        return None


def end(storage: Storage, run_id: str, attempt: int, driver: Driver | None) -> None:
    """End this driver's lease of a run, if it has the newest attempt.

    Otherwise a study that needs the run again later, as after `set_aside`, would wait for this driver.
    """
    if driver is not None and owner(storage, run_id, attempt) == driver:
        storage.write(f"{FOLDER}/{run_id}/{attempt}", b"null", durable=False)


def scratch(storage: Storage, run_id: str, attempt: int) -> Path | None:
    """The folder of an attempt's checkpoints, with those of earlier ones. None unless the ledger is local.

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


def keep(storage: Storage, run_id: str, attempt: int, folder: Path) -> None:
    """Copy an attempt's checkpoints into a remote ledger; then delete older copies."""
    copies = _copies(storage, run_id)
    number = 1 + max((k for n, k in copies if n == attempt), default=0)
    with storage.writing(_copy(run_id, attempt, number)) as room:
        shutil.copytree(folder, room, dirs_exist_ok=True, copy_function=_link)
        (room / MARKER).write_text("{}")
    for older in copies:
        if older < (attempt, number):
            storage.remove(_copy(run_id, *older))


def fetch(storage: Storage, run_id: str, into: Path) -> None:
    """Bring the newest complete copy of a run's checkpoints, if there is one, into a local folder."""
    for attempt, number in sorted(_copies(storage, run_id), reverse=True):
        name = _copy(run_id, attempt, number)
        with tempfile.TemporaryDirectory(dir=into.parent) as room:
            if storage.is_whole(name) and (found := storage.local(name, Path(room))) is not None:
                (found / MARKER).unlink()
                shutil.copytree(found, into, dirs_exist_ok=True, copy_function=_link)
                return


def _copies(storage: Storage, run_id: str) -> list[tuple[int, int]]:
    found = map(COPY.fullmatch, storage.children(f"{SCRATCH}/{run_id}"))
    return [(int(match[1]), int(match[2])) for match in found if match]


def _copy(run_id: str, attempt: int, number: int) -> str:
    return f"{SCRATCH}/{run_id}/{attempt}-{number}"


def _link(source: str, target: str) -> None:
    """Hard-link a file, which is never written again; copy it if the target is on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def clear(storage: Storage, run_id: str, newest: int) -> None:
    """Delete the checkpoints of all attempts at a run."""
    if not isinstance(storage, LocalStorage):
        storage.remove(f"{SCRATCH}/{run_id}")
        return
    for attempt in range(1, newest + 1):  # listing the folder would read the names of all lanes' checkpoints
        storage.remove(f"{SCRATCH}/{run_id}.{attempt}")
