"""Reads an entry and checks every field; a damaged file, or one of another run, is refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

import pyarrow as pa

from evaluators.metrics.scores import Aggregate
from orchestration.ledger.entries.files import Files, as_env
from orchestration.ledger.entries.layout import CONFUSED, CURVE, FORMAT, ITEM_FILE, ITEMS, TAKEN_FOR
from orchestration.ledger.entries.record import Metric, Record
from orchestration.ledger.notes import LaterFormat, whole_or
from orchestration.ledger.seal import SEAL
from orchestration.study.run import Run, former_id

AGGREGATES = get_args(Aggregate)


def read_training(files: Files) -> Record:
    """The record of a run's training; with its scores, if the entry is of the old format.

    Raises LedgerError for a missing or damaged file.
    """
    spec, body, env = files.json("spec.json"), files.json("result.json"), files.json("env.json", as_env)
    former = "evaluate" in spec
    if files.seal is None and not former:
        raise files.damaged(SEAL, "it is missing")
    if not former:
        return _record(files, spec, body, env, lambda run: run.id)
    return _record(files, spec, body, env, lambda _: former_id(spec), scored=True)


def read_scores(files: Files) -> Record:
    """The record of a run's scores on one task. Raises LedgerError for a missing or damaged file."""
    if files.seal is None:
        raise files.damaged(SEAL, "it is missing")
    spec, body, env = files.json("spec.json"), files.json("result.json"), files.json("env.json", as_env)
    task, rows = spec.pop("task", None), spec.pop("rows", None)
    if not isinstance(task, str) or not isinstance(rows, str):
        raise files.damaged("spec.json", "it names no task")
    named = {**spec, "tasks": {task: rows}}
    return _record(files, named, body, env, lambda run: run.entry(task), scored=True)


def read_taken_for(files: Files) -> pa.Table | None:
    """What items were mistaken for: metric, item_id, taken_for; None if the entry does not record it."""
    return files.table(TAKEN_FOR, CONFUSED) if files.seal and TAKEN_FOR in files.seal else None


def read_curve(files: Files) -> pa.Table:
    """The training curve: step, name ("loss", "loss/<term>", "learning_rate", …), value."""
    return files.table("curve.parquet", CURVE)


def read_checked_items(files: Files, record: Record) -> pa.Table:
    """Item-level scores: metric, item_id, group_id, value, gold (null where the metric has none).

    Raises LedgerError unless exactly the metrics with an aggregate have items.
    """
    table = files.table(ITEM_FILE, ITEMS)
    names = files.columns.distinct(table["metric"])  # the names in rows; the column's dictionary may hold more
    own = {name: metric for name, metric in record.metrics.items() if metric.entry == files.entry}
    for name, metric in own.items():
        if metric.aggregate is not None and name not in names:
            raise files.damaged(ITEM_FILE, f"it lacks the items of {name}")
    if strange := [name for name in names if name not in own or own[name].aggregate is None]:
        raise files.damaged(ITEM_FILE, f"it holds items of {strange[0]}, which by result.json is not made of any")
    return table


def _record(
    files: Files,
    spec: Mapping[str, Any],
    body: Mapping[str, Any],
    env: Mapping[str, Any],
    name_of: Callable[[Run], str],
    *,
    scored: bool = False,
) -> Record:
    """Check and assemble a record. name_of: the entry name of a run. scored: whether the entry holds metrics."""
    _refuse_later(files, body)
    with whole_or(partial(files.damaged, "spec.json")):
        run = Run.from_dict({name: value for name, value in spec.items() if name != "id"})
        named = spec["id"]
        own = name_of(run)
    if own != files.entry or named != files.run_id:
        raise files.damaged("spec.json", f"it describes another run: its fields give {own}")
    with whole_or(partial(files.damaged, "env.json")):
        if not isinstance(env["libraries"], dict):
            raise TypeError("libraries maps no names to versions")
    with whole_or(partial(files.damaged, "result.json")):
        if body.get("format", 1) not in (1, FORMAT):
            raise ValueError(f"format {body['format']}, known are 1 and {FORMAT}")
        seconds, cost = (
            {str(name): float(value) for name, value in figures.items()}
            for figures in (body["seconds"], body.get("cost", {}))
        )
        if not all(map(math.isfinite, (*seconds.values(), *cost.values()))):
            raise ValueError("seconds or costs are no finite numbers")
        ended = None if body.get("ended") is None else float(body["ended"])
        if ended is not None and not math.isfinite(ended):
            raise ValueError("ended is no finite number")
        return Record(
            id=files.run_id,
            run=run,
            metrics=_metrics(body["metrics"], files.entry) if scored else {},
            seconds=seconds,
            notes=dict(body["notes"]),
            env=env,
            attempt=int(body["attempt"]),
            url=files.url,
            sealed=files.seal is not None,
            items_digest=(files.seal or {}).get(ITEM_FILE, ""),
            began=None if ended is None else ended - sum(seconds.values()),
            cost=cost,
        )


def _refuse_later(files: Files, body: Mapping[str, Any]) -> None:
    """Raise LaterFormat for an entry of a later semray, before any other field is looked at."""
    written = body.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise LaterFormat(
            f"{files.url}: a later semray wrote it, in format {written}\n"
            f"  accepted: formats up to {FORMAT}; nothing is wrong with the entry, a newer semray reads it"
        )


def _metrics(written: Mapping[str, Any], entry: str) -> dict[str, Metric]:
    return {name: _metric(fields, entry) for name, fields in written.items()}


def _metric(fields: Mapping[str, Any], entry: str) -> Metric:
    value = math.nan if fields["value"] is None else float(fields["value"])
    plain = fields["value"] is None or type(fields["value"]) in (int, float)
    if not plain or not isinstance(fields["larger_is_better"], bool) or math.isinf(value):
        raise ValueError("a metric is a finite value, or null, and larger_is_better true or false")
    if fields["aggregate"] is not None and fields["aggregate"] not in AGGREGATES:
        raise ValueError(f"no aggregate {fields['aggregate']!r}")
    return Metric(
        value=value, aggregate=fields["aggregate"], larger_is_better=fields["larger_is_better"], entry=entry
    )
