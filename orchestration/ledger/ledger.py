"""The ledger: the durable record of finished runs, and the source of truth.

    <ledger>/<run id>/         a training: spec.json result.json env.json curve.parquet model/ seal.json
    <ledger>/<run id>.<scores id>/   the run's scores on one task: scores.parquet instead of curve and model
    <ledger>/.entries/, .results/   replace those two folders on an object store: see `object_storage`
    <ledger>/.staging/         <entry>.<attempt>: complete results that the driver has not committed yet
    <ledger>/.attempts/        <run id>/<n>: one file per lease, created exclusively: the fencing numbers
    <ledger>/.failures/        <run id>.json and .log of runs that failed and have not succeeded since
    <ledger>/.declared/        <study>.json: the claims as declared before the first run
    <ledger>/.budgets/         <budget>/<n>.json: the claims that a gate was asked about, in order
    <ledger>/.searches/        <study>/<search>/<n>.json: the points of a search, in order, and its end
    <ledger>/.drivers/         <study>/<n>: the lock of the process that drives a study, or drove it last
    <ledger>/.scratch/         <run id>.<attempt>: checkpoints of running attempts; on a remote ledger, copies
    <ledger>/.train/           <run id>: Ray Train's own state of a running worker group
    <ledger>/.doctor-<hex>/    files by which `semray doctor` checks that nodes share the ledger; temporary
    <ledger>/.repeats/         <run id>.json: the comparison of two executions of one run
    <ledger>/.trial-<hex>/     the temporary ledger of such a second execution
    <ledger>/.aside/           damaged entries that a person moved away

An entry's folder that exists is complete. No entry is ever unpickled.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestration.ledger import attempts, budgets, claims, failures, repeats
from orchestration.ledger.audit import damaged_notes, notes
from orchestration.ledger.budgets import Spent
from orchestration.ledger.claims import Declaration
from orchestration.ledger.columns import DecodedColumns
from orchestration.ledger.drivers import Driver, driving, is_driving, require_hold
from orchestration.ledger.entries.files import Files
from orchestration.ledger.entries.layout import ENTRY_FILES, ITEM_FILE
from orchestration.ledger.entries.read import (
    read_checked_items,
    read_curve,
    read_scores,
    read_taken_for,
    read_training,
)
from orchestration.ledger.entries.record import Record
from orchestration.ledger.entries.write import write_entry
from orchestration.ledger.failures import Failure
from orchestration.ledger.notes import NUMBER, LaterFormat, LedgerError
from orchestration.ledger.object_storage import PART, in_parallel
from orchestration.ledger.points import Points, searches
from orchestration.ledger.seal import SEAL, as_seal, broken_in
from orchestration.ledger.storage import kept, open_storage, reached
from orchestration.study.run import RUN_ID, Result, Run, run_of

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestration.ledger.repeats import Reproduction

T = TypeVar("T")
R = TypeVar("R")

UNSEALED = "unsealed"
LATER = "later"
MODEL = "model/"  # prefix of a model's files in the seal
ENTRY = re.compile(r"[0-9a-f]{16}(\.[0-9a-f]{16})?")
STAGED = re.compile(rf"({ENTRY.pattern})\.([0-9]{{1,9}})({re.escape(PART)})?")  # other names are ignored


class Ledger:
    """Finished runs at a local path or any fsspec URL (s3://bucket/ledger, memory://ledger).

    Lanes stage results, the driver commits them. A commit is atomic, so that a run is in the ledger once or not at
    all; an attempt older than the newest lease is refused. driver: the process that takes leases; set while it
    drives a study.
    """

    def __init__(self, url: str | Path, driver: Driver | None = None) -> None:
        self._storage = open_storage(url)
        self.url, self.driver = self._storage.url, driver
        self._columns = DecodedColumns()
        self._downloads: tempfile.TemporaryDirectory[str] | None = None

    @property
    def remote(self) -> bool:
        """True for an object store, where requests are slow and worth making in parallel."""
        return self._storage.at_once > 1

    # Reading entries

    def entries(self) -> frozenset[str]:
        """The names of all entries, trainings and scores. Raises StudyError when the ledger cannot be reached."""
        with reached(self.url):
            return frozenset(name for name in self._storage.entries() if ENTRY.fullmatch(name))

    def ids(self) -> set[str]:
        """The ids of all runs whose training is done. Raises StudyError when the ledger cannot be reached."""
        return {name for name in self.entries() if RUN_ID.fullmatch(name)}

    def has(self, entry: str) -> bool:
        return self._storage.taken(entry)

    def held(self, runs: Iterable[Run]) -> frozenset[str]:
        """The entries of these runs that the ledger holds, under old names too. Raises StudyError as `entries`.

        On an object store this takes few requests, however many other entries there are.
        """
        wanted = {entry for run in runs for entry in (run.former, *run.entries) if entry}
        with reached(self.url):
            return frozenset(self._storage.held(wanted) if wanted else ())

    def lacking(self, run: Run) -> tuple[str, ...]:
        """The entries of a run that the ledger lacks."""
        return run.lacking(self.held([run]))

    def holds(self, run: Run) -> bool:
        """True if a run is finished: trained, and scored on all its tasks."""
        return not self.lacking(run)

    def remaining(self, run: Run) -> Run:
        """The run reduced to the tasks whose scores the ledger lacks."""
        return run.remaining(self.held([run]))

    def trained(self, run: Run) -> bool:
        """True if the ledger holds a run's training, with or without its model."""
        return self.has(self._trained(run))

    def entries_of(self, run: Run) -> tuple[str, ...]:
        """The entries of a finished run: its own, or its one old entry if some of its own are missing."""
        if not run.former:
            return run.entries
        return run.entries_in([entry for entry in (run.former, *run.entries) if self.has(entry)])

    def record(self, run: Run) -> Record:
        """A finished run with its scores on all its tasks. Raises KeyError for a missing entry, LedgerError for a
        damaged one."""
        return replace(self.record_of(self.entries_of(run)), id=run.id, run=run)

    def records(self, runs: Iterable[Run]) -> dict[str, Record]:
        """The records of finished runs, by id. KeyError or LedgerError as `record`."""
        return {record.id: record for record in self._of_each(self.record, runs)}

    def record_of(self, entries: Sequence[str]) -> Record:
        """The record of one run from its entries, the training first. Raises as `record`."""
        record = self.training(entries[0])
        for entry in entries[1:]:
            record = record.with_scores(self.scores(entry))
        return record

    def training(self, run_id: str) -> Record:
        """The record of a run's training, without scores. Raises as `record`."""
        return read_training(self._files(run_id))

    def scores(self, entry: str) -> Record:
        """The record of a run's scores on one task. Raises as `record`."""
        return read_scores(self._files(entry))

    def trainings(self, run_ids: Iterable[str]) -> dict[str, Record]:
        """The records of these trainings, by id. Raises as `record`."""
        return {record.id: record for record in self._of_each(self.training, run_ids)}

    def scores_of(self, entries: Iterable[str]) -> dict[str, Record]:
        """The records of these entries of scores, by entry. Raises as `record`."""
        names = list(entries)
        return dict(zip(names, self._of_each(self.scores, names), strict=True))

    def items(self, entry: str, held: Record | None = None) -> pa.Table:
        """Item-level scores: metric, item_id, group_id, value, gold (null where the metric has none).

        held: the entry's record, if it was read before. Raises LedgerError if items of an item-based figure are
        missing.
        """
        files = self._files(entry, held.items_digest if held else "")
        if held is None:
            held = read_training(files) if RUN_ID.fullmatch(entry) else read_scores(files)
        return read_checked_items(files, held)

    def taken_for(self, entry: str) -> pa.Table | None:
        """What retrieval items were mistaken for: metric, item_id, taken_for; None if that is not recorded."""
        return read_taken_for(self._files(entry))

    def curve(self, run: Run) -> pa.Table:
        """The training curve: step, name ("loss", "loss/<term>", "learning_rate", …), value."""
        return self.curve_of(self._trained(run))

    def curve_of(self, entry: str) -> pa.Table:
        """As `curve`, for a training given by its entry."""
        return read_curve(self._files(entry))

    def files(self, entry: str) -> dict[str, bytes]:
        """The sealed files of an entry without its model, by name; other files in its folder are left out.

        Raises LedgerError for a link or a folder in a file's place.
        """
        files = self._files(entry)
        own = [name for name in ENTRY_FILES if files.seal is None or name in files.seal]
        names = own if files.seal is None else [*own, SEAL]
        return {name: files.raw(name) if name == SEAL else files.read(name) for name in names}

    def audit(self, entry: str) -> str | None:
        """What is wrong with an entry, in words; None if every file is as its run wrote it.

        UNSEALED for a readable entry from before seals, LATER for one of a later semray. Raises KeyError if there
        is no such entry.
        """
        try:
            files = self._files(entry)
            trained = RUN_ID.fullmatch(entry) is not None
            record = read_training(files) if trained else read_scores(files)
            if files.seal is None or not trained:
                read_checked_items(files, record)
            if trained:
                read_curve(files)
            if files.seal is None:
                return UNSEALED
            dropped = () if _with_model(files.seal) else (MODEL,)  # remains of a deleted model are no damage
            with self.downloads_end():
                folder = self._storage.local(entry, self._room())
                if folder and (broken := broken_in(folder, files.seal, apart=(SEAL, *dropped))):
                    raise files.damaged(*broken)
        except LaterFormat:
            return LATER
        except LedgerError as error:
            return str(error)
        return None

    def notes(self) -> list[str]:
        """The places of the files beside the entries."""
        return notes(self._storage)

    def damaged_notes(self) -> dict[str, str]:
        """The damaged files beside the entries: place -> what is wrong, and the remedy."""
        return damaged_notes(self._storage)

    def model(self, run: Run) -> Path | None:
        """A local folder with the model that a run trained, downloaded if need be; None if no model is kept.

        A download lasts as long as this ledger object, or the block of `downloads_end`. Raises KeyError for a run
        that is not trained, LedgerError for a model that is not as the run wrote it.
        """
        return self.model_of(self._trained(run))

    def model_of(self, entry: str) -> Path | None:
        """As `model`, for a training given by its entry."""
        try:
            return self._checked_model(entry)
        except (LedgerError, FileNotFoundError):
            seal = self._files(entry).seal
            if seal is None or _with_model(seal):
                raise
            return None  # another driver has dropped it meanwhile

    def _checked_model(self, entry: str) -> Path | None:
        files = self._files(entry)
        folder = self._storage.local(f"{entry}/model", self._room())
        if files.seal is None:
            return folder
        if not _with_model(files.seal):
            return None  # by the seal no model is kept; files there are remains
        if folder is None:
            raise files.damaged("model", "it is missing")
        if (broken := broken_in(folder, files.seal, MODEL)) is not None:
            raise files.damaged(*broken)
        return folder

    @contextmanager
    def downloads_end(self) -> Iterator[None]:
        """Delete what is downloaded within the block at its end. Not for several threads at a time."""
        outer, self._downloads = self._downloads, None
        try:
            yield
        finally:
            if self._downloads is not None:
                self._downloads.cleanup()
            self._downloads = outer

    def set_aside(self, entry: str) -> str:
        """Move a damaged entry to .aside, so that its run is done again. Return its new place."""
        self._require(entry)
        with kept(self.url):
            suffixes = (name.removeprefix(f"{entry}.") for name in self._storage.children(".aside"))
            earlier = max((int(suffix) for suffix in suffixes if NUMBER.fullmatch(suffix)), default=0)
            place = f".aside/{entry}.{earlier + 1}"
            self._storage.move(entry, place)
        return f"{self.url}/{place}"

    # Driving a study: leases, staged results, commits

    @contextmanager
    def drive(self, study: str) -> Iterator[list[str]]:
        """Hold a study, so that no other process drives it; yield the entries adopted from a driver that died.

        Raises StudyError while another living process drives the study.
        """
        with driving(self._storage, study) as driver:
            self.driver = driver
            try:
                yield self.adopt()
            finally:
                self.driver = None

    def still_driving(self) -> None:
        """Raise StudyError if another process took the study over, as this one was silent for too long."""
        if self.driver:
            require_hold(self._storage, self.driver)

    def lease(self, run_id: str) -> int:
        """The next attempt number of a run; from now on no older attempt can be committed.

        Raises StudyError as `still_driving` does.
        """
        self.still_driving()
        with kept(self.url):
            return attempts.lease(self._storage, run_id, self.driver)

    def lease_after(self, run_id: str, newest: int) -> int:
        """As `lease`; FileExistsError if anyone has leased the run since this attempt was its newest."""
        self.still_driving()
        with kept(self.url):
            return attempts.lease_after(self._storage, run_id, newest, self.driver)

    def leases(self, run_id: str) -> bool:
        """True if the newest attempt at a run is this driver's."""
        return attempts.owner(self._storage, run_id, self.newest(run_id)) == self.driver

    def give_back(self, run_id: str, attempt: int) -> None:
        """End this driver's lease of a run that it does not begin."""
        attempts.end(self._storage, run_id, attempt, self.driver)

    def newest(self, run_id: str) -> int:
        """The number of the latest attempt that was leased; 0 before the first."""
        return attempts.newest(self._storage, run_id)

    def held_elsewhere(self, run_id: str, newest: int | None = None) -> Driver | None:
        """Another living driver that is working on this run, for which to wait; None if there is none.

        newest: the run's newest attempt, if it was looked up before.
        """
        newest = self.newest(run_id) if newest is None else newest
        owner = attempts.owner(self._storage, run_id, newest) if newest else None
        if owner is None or owner == self.driver or not is_driving(self._storage, owner):
            return None
        failure = self.failure(run_id)
        return owner if failure is None or failure.attempt < newest else None

    def scratch(self, run_id: str, attempt: int) -> Path | None:
        """The folder of an attempt's checkpoints, with those of earlier ones. None unless the ledger is local."""
        return attempts.scratch(self._storage, run_id, attempt)

    def keep_checkpoint(self, run_id: str, attempt: int, folder: Path) -> None:
        """Copy an attempt's checkpoints into a remote ledger, for the next attempt on whatever machine."""
        attempts.keep(self._storage, run_id, attempt, folder)

    def checkpoint(self, run_id: str, into: Path) -> None:
        """Copy the newest kept checkpoint into a folder, if there is one."""
        attempts.fetch(self._storage, run_id, into)

    def stage(self, result: Result, attempt: int) -> None:
        """Write an attempt's result, for the driver to commit. Called in the process that executed the run."""
        with self._storage.staging(_staged(result.entry, attempt)) as folder:
            write_entry(folder, result, attempt)

    def staged(self, entry: str, attempt: int) -> bool:
        """True if this attempt's result is completely staged."""
        return self._storage.is_whole(_staged(entry, attempt))

    def commit(self, entry: str, attempt: int) -> bool:
        """Make a staged result an entry. Only the driver calls this.

        Return False, and drop the result, if the ledger holds the entry already or a newer attempt at its run was
        leased. Raises FileNotFoundError if nothing was staged.
        """
        staged = _staged(entry, attempt)
        with kept(self.url):
            newest = attempt >= self.newest(run_of(entry))
            if newest and not self.has(entry) and self._storage.publish(staged, entry):
                return True
            self._storage.discard(staged, entry)
        return False

    def adopt(self) -> list[str]:
        """Commit the complete results of drivers that died, newest attempt first, and delete the partial ones.

        Staged results of living drivers are left alone. Return the committed entries.
        """
        names = (name for name in self._storage.children(".staging") if STAGED.fullmatch(name))
        orphans = [name for name in names if not self._in_use(name)]
        orphans.sort(key=_parts, reverse=True)
        adopted = []
        for name in orphans:
            entry, _ = _parts(name)
            place = f".staging/{name}"
            whole = not name.endswith(PART) and self._storage.is_whole(place)
            if whole and not self.has(entry) and self._storage.publish(place, entry):
                self.forget_unless_held(run_of(entry))
                adopted.append(entry)
        for name in orphans:
            self._storage.discard(f".staging/{name}", _parts(name)[0])
        return adopted

    def forget(self, run_id: str) -> None:
        """End this driver's lease of a run, and delete all of the run but its entries and attempt numbers."""
        newest = self.newest(run_id)
        attempts.end(self._storage, run_id, newest, self.driver)
        failures.remove(self._storage, run_id)
        self._storage.remove(f".train/{run_id}")
        attempts.clear(self._storage, run_id, newest)

    def forget_unless_held(self, run_id: str) -> None:
        """As `forget`, unless another living driver is working on the run."""
        if self.held_elsewhere(run_id) is None:
            self.forget(run_id)

    def forget_finished(self, runs: Iterable[Run]) -> None:
        """As `forget_unless_held`, for those of these finished runs whose checkpoints a dead driver has left."""
        left = {name.partition(".")[0] for name in self._storage.children(attempts.SCRATCH)}
        for run in runs:
            if run.id in left:
                self.forget_unless_held(run.id)

    def size(self) -> int:
        """Bytes of all files in the ledger."""
        return self._storage.size("")

    def model_size(self, run: Run) -> int:
        """Bytes of a run's model, or of what is left of it; 0 for a run that is not trained."""
        entry = self._trained(run)
        return self._storage.size(f"{entry}/model") if self.has(entry) else 0

    def model_sizes(self, runs: Sequence[Run]) -> dict[str, int]:
        """As `model_size`, of many runs, by id."""
        return dict(zip((run.id for run in runs), self._of_each(self.model_size, runs), strict=True))

    def without_model(self, runs: Iterable[Run]) -> frozenset[str]:
        """The ids of those runs whose model is not kept."""

        def keeps(run: Run) -> bool:
            entry = self._trained(run)
            seal = self._files(entry).seal if self.has(entry) else {}
            return (seal is None or _with_model(seal)) and self._storage.size(f"{entry}/model") > 0

        runs = list(runs)
        there = self._of_each(keeps, runs)
        return frozenset(run.id for run, model in zip(runs, there, strict=True) if not model)

    def model_files(self, runs: Iterable[Run]) -> list[frozenset[str]]:
        """The names of the files of each trained run's model, by its seal; none where no model is kept."""

        def names(run: Run) -> frozenset[str]:
            seal = self._files(self._trained(run)).seal or {}
            return frozenset(name.removeprefix(MODEL) for name in seal if name.startswith(MODEL))

        return self._of_each(names, runs)

    def drop_model(self, run: Run) -> None:
        """Delete a run's model. Its scores stay valid; scoring it on a new task will train it again.

        Raises as `record`, and then deletes nothing, for an entry that cannot be read or is of a later semray.
        """
        entry = self._trained(run)
        files = self._files(entry)
        read_training(files)
        seal = files.seal
        if seal is not None and _with_model(seal):  # first, so that a half-deleted model is never used
            kept_files = {name: digest for name, digest in seal.items() if not name.startswith(MODEL)}
            self._storage.write(f"{entry}/{SEAL}", as_seal(kept_files))
        self._storage.remove(f"{entry}/model")

    def drop_models(self, runs: Iterable[Run]) -> None:
        """As `drop_model`, of many runs."""
        self._of_each(self.drop_model, runs)

    # Failures

    def fail(self, run: Run, attempt: int, error: str, traceback: str, *, final: bool = False) -> Failure:
        """Record that an attempt failed. The record is deleted when the run is finished."""
        with kept(self.url):
            return failures.write(self._storage, run, attempt, error, traceback, final=final)

    def failure(self, run_id: str) -> Failure | None:
        """The failure of a run's last attempt; None if it did not fail, or if the run was finished since."""
        return failures.read(self._storage, run_id)

    def failed(self, among: Iterable[Run] | None = None) -> dict[str, Failure]:
        """The failures of runs whose last attempt failed, by run id; of all runs, or of those in `among`."""
        wanted = None if among is None else {run.id for run in among}
        ids = [run_id for run_id in failures.ids(self._storage) if wanted is None or run_id in wanted]
        found = [failure for failure in self._of_each(self.failure, ids) if failure]  # else finished since
        held = self.held(failure.run for failure in found)
        return {failure.id: failure for failure in found if failure.run.lacking(held)}

    # Declared claims

    def declare(self, study: str, claimed: Sequence[Mapping[str, Any]]) -> Declaration:
        """Record a study's claims, unless it has recorded some; either way return those recorded first."""
        with kept(self.url):
            return claims.declare(self._storage, study, claimed)

    def redeclare(self, study: str, claimed: Sequence[Mapping[str, Any]]) -> Declaration:
        """Replace a study's recorded claims. The caller ensures that no result on a changed claim was seen."""
        with kept(self.url):
            return claims.redeclare(self._storage, study, claimed)

    def declared(self, study: str) -> Declaration | None:
        """The claims that a study declared first; None before its first run. LedgerError if they were altered."""
        return claims.declared(self._storage, study)

    def declared_studies(self) -> list[str]:
        """The studies with recorded claims, which may be damaged. Raises StudyError as `entries`."""
        with reached(self.url):
            return claims.studies(self._storage)

    def declarations(self) -> list[Declaration]:
        """The claims that each study declared first. Raises StudyError as `entries`."""
        with reached(self.url):
            return list(claims.every(self._storage))

    def ask(self, budget: str, answer: Callable[[Sequence[Spent]], Spent]) -> Spent:
        """Record a question as the next one that a budget is spent on. A repeated question keeps its answer."""
        with kept(self.url):
            return budgets.ask(self._storage, budget, answer)

    # Searches

    def points(self, study: str, search: str) -> Points:
        """A search of a study: the points that it tried, and its result."""
        return Points(self._storage, study, search)

    def searches(self, study: str) -> list[str]:
        """The ids of a study's searches, one for each space, arm and data that it ever declared."""
        return searches(self._storage, study)

    # Repeated runs

    def keep_repeat(self, repeat: Reproduction) -> None:
        """Record the comparison of two executions of one run."""
        with kept(self.url):
            repeats.write(self._storage, repeat)

    def repeats(self, runs: Sequence[str]) -> list[Reproduction]:
        """The recorded repetitions of these runs, given by id."""
        return list(repeats.read(self._storage, runs))

    def remove_trial(self, name: str) -> None:
        """Delete the temporary ledger of a repetition."""
        self._storage.remove(name)

    # Details

    def _of_each(self, read: Callable[[T], R], each: Iterable[T]) -> list[R]:
        return in_parallel(read, each, self._storage.at_once)

    def _require(self, entry: str) -> None:
        if not self.has(entry):
            raise KeyError(f"{self.url} holds no entry {entry}")

    def _files(self, entry: str, items_digest: str = "") -> Files:
        """items_digest: the digest of the entry's items, if its seal was read before; then only items are read."""
        self._require(entry)
        place, columns = self._storage.place(entry), self._columns

        def read(file: str) -> bytes:
            return self._storage.read(f"{entry}/{file}")

        if items_digest:
            return Files(entry=entry, url=place, raw=read, seal={ITEM_FILE: items_digest}, columns=columns)
        return Files.of(entry, place, read, columns)

    def _trained(self, run: Run) -> str:
        """The entry with a run's training, under its own name or its old one."""
        return run.former if run.former and not self.has(run.id) and self.has(run.former) else run.id

    def _room(self) -> Path:
        """The folder for downloads."""
        if self._downloads is None:
            self._downloads = tempfile.TemporaryDirectory(prefix="semray-models-")
        return Path(self._downloads.name)

    def _in_use(self, name: str) -> bool:
        entry, attempt = _parts(name)
        owner = attempts.owner(self._storage, run_of(entry), attempt)
        return owner is not None and is_driving(self._storage, owner)


def _with_model(seal: Mapping[str, str]) -> bool:
    return any(name.startswith(MODEL) for name in seal)


def _staged(entry: str, attempt: int) -> str:
    return f".staging/{entry}.{attempt}"


def _parts(name: str) -> tuple[str, int]:
    """Entry and attempt of a staged folder's name."""
    found = STAGED.fullmatch(name)
    assert found is not None
    return found[1], int(found[3])
