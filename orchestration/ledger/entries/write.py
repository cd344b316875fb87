"""Writes what a run leaves as an entry: plain JSON, Parquet with checksums, and the seal over all of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.ledger.entries.layout import CONFUSED, CURVE, FORMAT, ITEM_FILE, ITEMS, TAKEN_FOR
from orchestration.ledger.environment import environment
from orchestration.ledger.seal import write_seal
from orchestration.study.names import NAME_WORDS, is_path_component
from orchestration.study.run import Result, Run, Scored, Trained

if TYPE_CHECKING:
    from evaluators.metrics.scores import Score
    from trainers.engine.world import Progress


def write_entry(folder: Path, result: Result, attempt: int) -> None:
    """Fill an empty folder with all files of an entry, sealed."""
    if isinstance(result, Trained):
        spec, body = _write_training(folder, result)
    else:
        spec, body = _write_scores(folder, result)
    _write_json(folder / "spec.json", spec)
    _write_json(folder / "env.json", environment())
    plain = {"seconds": dict(result.seconds), "notes": dict(result.notes), "attempt": attempt, "format": FORMAT}
    plain |= {"ended": round(time.time(), 3), "cost": dict(result.cost)}
    _write_json(folder / "result.json", {**body, **plain})
    write_seal(folder)


def _write_training(folder: Path, result: Trained) -> tuple[dict[str, Any], dict[str, Any]]:
    pq.write_table(_curve(result.curve), folder / "curve.parquet", write_page_checksum=True)
    if result.save_model is not None:
        (folder / "model").mkdir()
        result.save_model(folder / "model")
    return _training_of(result.run), {}


def _write_scores(folder: Path, result: Scored) -> tuple[dict[str, Any], dict[str, Any]]:
    run, scores = result.run, result.scores
    pq.write_table(_items(scores), folder / ITEM_FILE, write_page_checksum=True)
    if (confused := _confused(scores)) is not None:
        pq.write_table(confused, folder / TAKEN_FOR, write_page_checksum=True)
    metrics = {score.metric: _metric(score) for score in scores}
    if len(metrics) != len(scores):
        raise ValueError(f"{run.label}: two scores of one metric in {[score.metric for score in scores]}")
    if wrong := [name for name in metrics if not all(map(is_path_component, name.split("/")))]:
        raise ValueError(f"{run.label}: metric {wrong[0]!r}\n  accepted: parts joined by /, each {NAME_WORDS}")
    return {**_training_of(run), "task": result.task, "rows": run.tasks[result.task]}, {"metrics": metrics}


def _training_of(run: Run) -> dict[str, Any]:
    """What a run is, without the tasks that some study happened to ask for."""
    fields = run.to_dict()
    return {**{name: value for name, value in fields.items() if name not in ("tasks", "former")}, "id": run.id}


def _items(scores: Sequence[Score]) -> pa.Table:
    """Item-level scores, one row per metric and item. An item without a group is a group of its own."""
    tables = [ITEMS.empty_table()]
    for score in scores:
        if score.values is None:
            continue
        count, groups = len(score.values), score.group_ids or score.item_ids
        gold = [None] * count if score.gold is None else score.gold
        if not count == len(score.item_ids) == len(groups) == len(gold):
            raise ValueError(f"{score.metric}: values, item_ids, group_ids and gold are of different lengths")
        columns = [pa.array([score.metric] * count), score.item_ids, groups, score.values, gold]
        arrays = [pa.array(column, from_pandas=False) for column in columns]
        tables.append(pa.Table.from_arrays(arrays, names=ITEMS.names).cast(ITEMS))
    return pa.concat_tables(tables).unify_dictionaries()


def _confused(scores: Sequence[Score]) -> pa.Table | None:
    """Only items that were confused with something have a row."""
    rows = [
        (score.metric, item, other)
        for score in scores
        if score.taken_for
        for item, other in zip(score.item_ids, score.taken_for, strict=True)
        if other
    ]
    return pa.table(list(zip(*rows, strict=True)), schema=CONFUSED) if rows else None


def _curve(curve: Sequence[Progress]) -> pa.Table:
    rows = [(point.step, name, value) for point in curve for name, value in _figures(point).items()]
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(list(columns), schema=CURVE)


def _figures(point: Progress) -> dict[str, float]:
    rates = {"learning_rate": point.learning_rate, "sentences_per_second": point.sentences_per_second}
    return {
        "loss": point.loss,
        **{f"loss/{term}": value for term, value in point.terms.items()},
        **point.figures,
        **{name: rate for name, rate in rates.items() if rate is not None},
    }


def _metric(score: Score) -> dict[str, Any]:
    value = float(score.value)
    return {
        "value": value if math.isfinite(value) else None,  # JSON has no nan
        "aggregate": score.aggregate,
        "larger_is_better": score.larger_is_better,
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
