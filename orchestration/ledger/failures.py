"""Records of runs whose last attempt failed.

.failures/<run id>.json     the last attempt that failed; <run id>.log its traceback
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestration.ledger.notes import is_of_a_run, note_if_there, now, sealed
from orchestration.ledger.storage import Storage
from orchestration.study.run import Run, former_id

FOLDER = ".failures"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run's last attempt, which failed.

    error: one line. log: the place of the traceback. at: ISO 8601. final: another attempt would fail the same way;
    then further lines of `error` say what is accepted.
    """

    id: str
    run: Run
    attempt: int
    error: str
    log: str
    at: str
    final: bool = False


def write(storage: Storage, run: Run, attempt: int, error: str, traceback: str, *, final: bool) -> Failure:
    """Record that an attempt failed, replacing the record of an earlier one."""
    at = now()
    body = {"run": run.to_dict(), "attempt": attempt, "error": error, "at": at, "final": final}
    place = f"{FOLDER}/{run.id}.json"
    storage.write(f"{FOLDER}/{run.id}.log", traceback.encode(errors="backslashreplace"))
    storage.write(place, sealed(body, place))
    return _failure(storage, run.id, body)


def read(storage: Storage, run_id: str) -> Failure | None:
    """The record of a run's failure; None without one. Raises LedgerError if it is damaged."""
    place = f"{FOLDER}/{run_id}.json"
    remedy = f"no such file, and run {run_id} counts as not tried: delete it"
    return note_if_there(storage, place, remedy, partial(_failure, storage, run_id))


def ids(storage: Storage) -> list[str]:
    """The ids of runs with a record."""
    return [name.removesuffix(".json") for name in storage.children(FOLDER) if is_of_a_run(name)]


def remove(storage: Storage, run_id: str) -> None:
    """Delete the record of a run that is done."""
    storage.unlink(f"{FOLDER}/{run_id}.json")
    storage.unlink(f"{FOLDER}/{run_id}.log")


def _failure(storage: Storage, run_id: str, body: Mapping[str, Any]) -> Failure:
    return Failure(
        id=run_id,
        run=_run(run_id, body["run"]),
        attempt=int(body["attempt"]),
        error=str(body["error"]),
        log=f"{storage.url}/{FOLDER}/{run_id}.log",
        at=str(body["at"]),
        final=bool(body["final"]),
    )


def _run(run_id: str, fields: Mapping[str, Any]) -> Run:
    """The run in a record. ValueError if it is not that of the file's name, which old seals do not cover."""
    run = Run.from_dict(fields)
    own = former_id(fields) if "evaluate" in fields else run.id
    if own != run_id:
        raise ValueError(f"it tells of run {own}")
    _ = run.label, run.lacking(frozenset())  # fail here, not later, if fields outside the id are damaged
    return run
