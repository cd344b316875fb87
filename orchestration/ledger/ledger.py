"""The ledger: the durable record of finished runs, and the source of truth.

    <ledger>/<run id>/         result.json spec.json env.json scores.parquet curve.parquet model/
    <ledger>/.staging/         <run id>.<attempt>: whole results that the driver has not committed yet
    <ledger>/.attempts/        <run id>/<n>: one file per lease, created exclusively: the fencing numbers
    <ledger>/.failures/        <run id>.json and .log of runs that failed and were not done since
    <ledger>/.declared/        <study>.json: the claims as they stood before the first run
    <ledger>/.searches/        <study>/<search>/<n>.json: the points of a search, in their order
    <ledger>/.drivers/         who drives which study, or drove it last
    <ledger>/.scratch/         <run id>.<attempt>: checkpoints of running attempts (local ledgers)
    <ledger>/.train/           <run id>: Ray Train's own state of a running worker group
    <ledger>/.doctor-<hex>/    what nodes wrote to show each other that they share it; gone when the check ends
    <ledger>/.aside/           damaged entries that a person moved away

A run's folder that exists is complete. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.ledger import claims, points
from orchestration.ledger.claims import Declaration
from orchestration.ledger.drivers import Driver, driving, is_driving, require_hold
from orchestration.ledger.entry import (
    CURVE,
    ITEMS,
    LedgerError,
    Metric,
    Record,
    read_record,
    read_table,
    write_entry,
)
from orchestration.ledger.storage import PART, LocalStorage, kept, open_storage, reached
from orchestration.study.run import Result, Run

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Declaration", "Failure", "Ledger", "LedgerError", "Metric", "Record"]

RUN_ID = re.compile(r"[0-9a-f]{16}")
STAGED = re.compile(rf"{RUN_ID.pattern}\.[0-9]+({re.escape(PART)})?")  # all else in .staging is not the ledger's


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The last attempt of a run that failed.

    error is one line, log the place of its traceback, at ISO 8601. final: it would fail the same way again;
    then further lines of `error` say what is accepted.
    """

    id: str
    run: Run
    attempt: int
    error: str
    log: str
    at: str
    final: bool = False


class Ledger:
    """Finished runs at a local path or any fsspec URL (s3://bucket/ledger, memory://ledger).

    Lanes stage, the driver commits. A commit is one atomic step, so that a run is in the ledger once or not at
    all; an attempt older than the newest lease is refused. driver: in whose name leases are taken; set while
    driving a study.
    """

    def __init__(self, url: str | Path, driver: Driver | None = None) -> None:
        self._storage = open_storage(url)
        self.url, self.driver = self._storage.url, driver
        self._models: tempfile.TemporaryDirectory[str] | None = None

    # What is there

    def ids(self) -> set[str]:
        """The ids of all finished runs. Raises StudyError when the ledger cannot be reached."""
        with reached(self.url):
            return {name for name in self._storage.entries() if RUN_ID.fullmatch(name)}

    def has(self, run_id: str) -> bool:
        return self._storage.is_whole(run_id)

    def record(self, run_id: str) -> Record:
        """A finished run. Raises KeyError when there is none, LedgerError when its files are damaged."""
        self._require(run_id)
        return read_record(run_id, f"{self.url}/{run_id}", lambda file: self._storage.read(f"{run_id}/{file}"))

    def items(self, run_id: str) -> pa.Table:
        """Item-level scores: metric, item_id, group_id, value, gold (null where the metric has none)."""
        return self._table(run_id, "scores.parquet", ITEMS)

    def curve(self, run_id: str) -> pa.Table:
        """The training curve: step, name ("loss", "loss/<term>", "learning_rate", …), value."""
        return self._table(run_id, "curve.parquet", CURVE)

    def files(self, run_id: str) -> dict[str, bytes]:
        """All files of an entry but its model, by name."""
        self._require(run_id)
        names = (name for name in self._storage.children(run_id) if name != "model")
        return {name: self._storage.read(f"{run_id}/{name}") for name in names}

    def model(self, run_id: str) -> Path | None:
        """The trained model's folder here, None without one. A download lasts as long as this ledger object."""
        self._require(run_id)
        if self._models is None:
            self._models = tempfile.TemporaryDirectory(prefix="semray-models-")
        return self._storage.local(f"{run_id}/model", Path(self._models.name))

    def set_aside(self, run_id: str) -> str:
        """Move a damaged entry away, so that its run is done again. Returns where it went."""
        self._require(run_id)
        earlier = sum(name.startswith(run_id) for name in self._storage.children(".aside"))
        place = f".aside/{run_id}.{earlier + 1}"
        self._storage.move(run_id, place)
        return f"{self.url}/{place}"

    # A run's way into the ledger

    @contextmanager
    def drive(self, study: str) -> Iterator[list[str]]:
        """Hold a study: no other process drives it meanwhile. Yields the run ids adopted from a driver that died.

        Raises StudyError while another living process drives the study.
        """
        with driving(self._storage, study) as driver:
            self.driver = driver
            try:
                yield self.adopt()
            finally:
                self.driver = None

    def still_driving(self) -> None:
        """Raises StudyError when the study that is being driven was taken over: this process was away for long."""
        if self.driver:
            require_hold(self._storage, self.driver)

    def lease(self, run_id: str) -> int:
        """The next attempt number of a run; from now on no older attempt can be committed.

        It need not survive a power cut: no older attempt does either. Raises StudyError as `still_driving` does.
        """
        self.still_driving()
        owner = json.dumps(self.driver.to_dict() if self.driver else None).encode()
        while True:
            attempt = self.newest(run_id) + 1
            try:
                with kept(self.url):
                    self._storage.create(f".attempts/{run_id}/{attempt}", owner, durable=False)
            except FileExistsError:
                continue
            return attempt

    def newest(self, run_id: str) -> int:
        """The number of the latest attempt that was leased; 0 before the first."""
        return max(map(int, self._storage.children(f".attempts/{run_id}")), default=0)

    def held_elsewhere(self, run_id: str) -> bool:
        """Whether another living driver is at work on this run: wait for it rather than doing it twice."""
        newest = self.newest(run_id)
        owner = self._owner(run_id, newest)
        if owner is None or owner == self.driver or not is_driving(self._storage, owner):
            return False
        failure = self.failure(run_id)
        return failure is None or failure.attempt < newest

    def scratch(self, run_id: str, attempt: int) -> Path | None:
        """An attempt's checkpoints folder, with what the attempt before it left. None unless the ledger is local.

        The folder is renamed from attempt to attempt, so that a paused older one cannot write into it.
        """
        if not isinstance(self._storage, LocalStorage):
            return None
        place = self._storage.root / ".scratch" / f"{run_id}.{attempt}"
        earlier = (place.with_name(f"{run_id}.{number}") for number in range(attempt - 1, 0, -1))
        if (latest := next((path for path in earlier if path.is_dir()), None)) is not None:
            latest.rename(place)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def stage(self, run: Run, result: Result, attempt: int) -> None:
        """Write an attempt's whole result, for the driver to commit. Called where the run executed."""
        with self._storage.writing(_staged(run.id, attempt)) as folder:
            write_entry(folder, run, result, attempt)

    def staged(self, run_id: str, attempt: int) -> bool:
        """Whether this attempt's result is complete."""
        return self._storage.is_whole(_staged(run_id, attempt))

    def commit(self, run_id: str, attempt: int) -> bool:
        """Make a staged result the run's entry; the driver alone calls this.

        False, and the staged result is dropped, when the run is in the ledger already or a newer attempt was
        leased. FileNotFoundError when nothing was staged.
        """
        published = False
        with kept(self.url):
            if attempt >= self.newest(run_id) and not self.has(run_id):
                published = self._storage.publish(_staged(run_id, attempt), run_id)
            self._storage.remove(_staged(run_id, attempt))
            if published or self.has(run_id):  # by whomever; a paused lane may have written checkpoints since
                self.forget(run_id)
        return published

    def adopt(self) -> list[str]:
        """Commit the complete results of drivers that died, newest attempt first; delete the partial ones.

        Staged results of a living driver are left alone. Returns the ids that came into the ledger.
        """
        names = (name for name in self._storage.children(".staging") if STAGED.fullmatch(name))
        orphans = [name for name in names if not self._in_use(name)]
        orphans.sort(key=_parts, reverse=True)
        adopted = []
        for name in orphans:
            run_id, _ = _parts(name)
            place = f".staging/{name}"
            if not name.endswith(PART) and self._storage.is_whole(place) and not self.has(run_id):
                self._storage.publish(place, run_id)
                self.forget(run_id)
                adopted.append(run_id)
        for name in orphans:
            self._storage.remove(f".staging/{name}")
        return adopted

    # What failed

    def fail(self, run: Run, attempt: int, error: str, traceback: str, *, final: bool = False) -> Failure:
        """Record that an attempt failed. The record goes when the run is committed."""
        place = f".failures/{run.id}"
        body = {"run": run.to_dict(), "attempt": attempt, "error": error, "at": _now(), "final": final}
        with kept(self.url):
            self._storage.write(f"{place}.log", traceback.encode())
            self._storage.write(f"{place}.json", json.dumps(body, indent=1).encode())
        return self._read_failure(run.id, body)

    def failure(self, run_id: str) -> Failure | None:
        """How a run's last attempt failed; None when it did not, or was committed since."""
        try:
            return self._read_failure(run_id, json.loads(self._storage.read(f".failures/{run_id}.json")))
        except FileNotFoundError:
            return None

    def failed(self) -> dict[str, Failure]:
        """Runs whose last attempt failed, by id."""
        names = (name for name in self._storage.children(".failures") if name.endswith(".json"))
        found = (self.failure(name.removesuffix(".json")) for name in names)
        return {failure.id: failure for failure in found if failure is not None and not self.has(failure.id)}

    # What was claimed

    def declare(self, study: str, claimed: Sequence[Mapping[str, Any]]) -> Declaration:
        """Write a study's claims down, once; a later call changes nothing and finds out which claims are new."""
        with kept(self.url):
            return claims.declare(self._storage, study, claimed)

    def declared(self, study: str) -> Declaration | None:
        """The first claims of a study; None before its first run. Raises LedgerError when they were altered."""
        return claims.declared(self._storage, study)

    # What was searched

    def suggest(self, study: str, search: str, number: int, point: Mapping[str, Any]) -> None:
        """Write down which point a search tries as its `number`th, before its first run."""
        with kept(self.url):
            points.suggest(self._storage, study, search, number, point)

    def suggested(self, study: str, search: str) -> list[dict[str, Any]]:
        """The points of a search, in the order in which they were suggested."""
        return points.suggested(self._storage, study, search)

    def stop_early(self, study: str, search: str, number: int, seed: int, looks: Mapping[int, float]) -> None:
        """Write down that a search ended a point's run, with its development scores by step."""
        with kept(self.url):
            points.stop(self._storage, study, search, number, seed, looks)

    def stopped_early(self, study: str, search: str) -> dict[tuple[int, int], dict[int, float]]:
        """The runs that a search ended: (number of the point, seed) -> step -> development score."""
        return points.stopped(self._storage, study, search)

    # Details

    def _require(self, run_id: str) -> None:
        if not self.has(run_id):
            raise KeyError(f"{self.url} holds no run {run_id}")

    def _table(self, run_id: str, file: str, schema: pa.Schema) -> pa.Table:
        self._require(run_id)
        url = f"{self.url}/{run_id}"
        return read_table(run_id, url, file, schema, lambda name: self._storage.read(f"{run_id}/{name}"))

    def _owner(self, run_id: str, attempt: int) -> Driver | None:
        try:
            fields = json.loads(self._storage.read(f".attempts/{run_id}/{attempt}"))
        except (FileNotFoundError, ValueError):  # a power cut may leave it empty
            return None
        return None if fields is None else Driver.from_dict(fields)

    def _in_use(self, name: str) -> bool:
        owner = self._owner(*_parts(name))
        return owner is not None and is_driving(self._storage, owner)

    def _read_failure(self, run_id: str, body: Mapping[str, Any]) -> Failure:
        return Failure(
            id=run_id,
            run=Run.from_dict(body["run"]),
            attempt=body["attempt"],
            error=body["error"],
            log=f"{self.url}/.failures/{run_id}.log",
            at=body["at"],
            final=body["final"],
        )

    def forget(self, run_id: str) -> None:
        """Nothing of a run stays but its entry, if it has one, and its attempt numbers."""
        self._storage.remove(f".failures/{run_id}.json")
        self._storage.remove(f".failures/{run_id}.log")
        self._storage.remove(f".train/{run_id}")
        if isinstance(self._storage, LocalStorage):
            for left in (self._storage.root / ".scratch").glob(f"{run_id}.*"):
                shutil.rmtree(left, ignore_errors=True)


def _staged(run_id: str, attempt: int) -> str:
    return f".staging/{run_id}.{attempt}"


def _parts(name: str) -> tuple[str, int]:
    """Run id and attempt of a staged folder's name."""
    run_id, attempt = name.removesuffix(PART).split(".")
    return run_id, int(attempt)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
