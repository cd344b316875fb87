"""Estimates the time of a study without finished runs, from similar runs in ledgers of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from orchestration.ledger.environment import cpu_model
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.study.run import RUN_ID, canonical
from trainers.engine.limits import STEP_NAMES

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.plan.plan import Plan
    from orchestration.study.run import Run

MOST_READ = 60  # trainings that are read in one ledger, the newest first
MOST_USED = 12  # of these, at most so many of the kinds sought
WRITTEN_BY = (".declared", ".searches")  # folders that mark a ledger: of a study, of a search
BATCHES = ("batch_size", "per_device_train_batch_size")


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """An estimate in seconds of one lane, the number of runs it rests on, and their ledgers."""

    seconds: float
    runs: int
    ledgers: tuple[str, ...]


def foretell(plan: Plan, ledger: Ledger) -> Foretold | None:
    """Estimate from runs of the same family and backbone on the same kind of processor; None if one kind has none.

    A script's runs are estimated from runs of the same command. Training time scales with the texts (steps x batch
    size), or with epochs over the same rows. Scoring is estimated by the mean time of each task in those runs, or
    of all tasks. A run that needs no training is only scored, if those runs recorded how long that takes.
    """
    trained = [run for run in plan.left if run.seed is not None]
    kinds, on_gpu = {_kind(run) for run in trained}, plan.study.resources.gpus_per_run > 0
    by_kind: dict[Any, list[tuple[Ledger, Record]]] = {}
    for near in _ledgers(ledger):
        for record in islice((found for found in _newest(near, on_gpu) if _kind(found.run) in kinds), MOST_USED):
            by_kind.setdefault(_kind(record.run), []).append((near, record))
    if kinds - by_kind.keys():
        return None
    rates = {
        kind: fmean(sum(record.seconds.values()) / _work(record.run) for _, record in found)
        for kind, found in by_kind.items()
    }
    used = [pair for found in by_kind.values() for pair in found]
    scoring = _scoring(used)
    of_any_task = fmean(scoring.values()) if scoring else 0.0
    to_train = [run for run in trained if not of_any_task or run.id not in plan.only_scored]
    total = sum(_work(run) * rates[_kind(run)] for run in to_train)
    lacking = [task for run in plan.left for task in run.remaining(plan.finished).tasks]
    total += sum(scoring.get(task, of_any_task) for task in lacking)
    places = dict.fromkeys(near.url for near, _ in used)
    return Foretold(seconds=total, runs=len(used), ledgers=tuple(places))


def _kind(run: Run) -> tuple[Any, ...]:
    """What two runs must share for the time of one to estimate the other's."""
    unit = "texts" if _first(run, STEP_NAMES) else f"epochs of {run.corpus_fingerprint}"
    command = canonical(run.defining.get("run"))  # of a script, whose options may say how long it takes
    return run.family, run.backbone_fingerprint, run.precision, run.world_size, unit, command


def _work(run: Run) -> float:
    steps = _first(run, STEP_NAMES)
    return steps * (_first(run, BATCHES) or 1.0) if steps else _first(run, ("epochs", "num_train_epochs")) or 1.0


def _first(run: Run, names: Sequence[str]) -> float | None:
    values = (run.settings.get(name) for name in names)
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def _ledgers(ledger: Ledger) -> Iterator[Ledger]:
    """The study's own ledger, and those of the same name in folders beside it or its folder; none if remote."""
    if ledger.remote:
        return
    place = Path(ledger.url)
    near = [one for up in (place.parent, place.parent.parent) for one in sorted(up.glob(f"*/{place.name}"))]
    for folder in dict.fromkeys([place, *near]):
        if any((folder / name).is_dir() for name in WRITTEN_BY):
            yield Ledger(folder)


def _newest(ledger: Ledger, on_gpu: bool) -> Iterator[Record]:
    """Trainings on this kind of machine, the newest first. Unreadable ones are skipped."""
    folders = [path for path in Path(ledger.url).iterdir() if RUN_ID.fullmatch(path.name)]
    for path in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST_READ]:
        try:
            record = ledger.training(path.name)
        except (LedgerError, KeyError):
            continue
        cpu, device = record.env.get("cpu"), record.env.get("device")
        alike = cpu == cpu_model() and (device not in ("cpu", None)) == on_gpu
        if alike and record.run.seed is not None and sum(record.seconds.values()) > 0:
            yield record


def _scoring(used: Sequence[tuple[Ledger, Record]]) -> dict[str, float]:
    """Task -> its mean seconds over these runs."""
    found: dict[str, list[float]] = {}
    for ledger, record in used:
        for path in Path(ledger.url).glob(f"{record.id}.*"):
            try:
                scores = ledger.scores(path.name)
            except (LedgerError, KeyError):
                continue
            found.setdefault(next(iter(scores.run.tasks)), []).append(sum(scores.seconds.values()))
    return {task: fmean(seconds) for task, seconds in found.items()}
