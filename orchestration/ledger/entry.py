"""One entry of the ledger: the files that a finished run leaves, written whole and read with suspicion."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.ledger.environment import environment
from orchestration.study.errors import StudyError
from orchestration.study.names import NAME_WORDS, is_path_component
from orchestration.study.run import Result, Run

if TYPE_CHECKING:
    from evaluators.metrics.scores import Aggregate, Score
    from trainers.engine.world import Progress

ITEMS = pa.schema(
    {
        "metric": pa.dictionary(pa.int32(), pa.string()),
        "item_id": pa.string(),
        "group_id": pa.string(),
        "value": pa.float64(),
        "gold": pa.float64(),
    }
)
CURVE = pa.schema({"step": pa.int64(), "name": pa.string(), "value": pa.float64()})

Read = Callable[[str], bytes]  # file name within the entry -> content; FileNotFoundError


class LedgerError(StudyError):
    """An entry of the ledger is damaged: the message names the file and what mends it."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a run. aggregate as in `evaluators.metrics.scores.Score`; value is nan where it has none."""

    value: float
    aggregate: Aggregate | None
    larger_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Record:
    """A finished run as the ledger holds it; url is where its files lie."""

    id: str
    run: Run
    metrics: Mapping[str, Metric]
    seconds: Mapping[str, float]
    notes: Mapping[str, Any]
    env: Mapping[str, Any]
    attempt: int
    url: str


def write_entry(folder: Path, run: Run, result: Result, attempt: int) -> None:
    """Fill an empty folder with all files of a finished run."""
    pq.write_table(_items(result.scores), folder / "scores.parquet", write_page_checksum=True)
    pq.write_table(_curve(result.curve), folder / "curve.parquet", write_page_checksum=True)
    if result.save_model is not None:
        (folder / "model").mkdir()
        result.save_model(folder / "model")
    _write_json(folder / "env.json", environment())
    _write_json(folder / "spec.json", {**run.to_dict(), "id": run.id})
    metrics = {score.metric: _metric(score) for score in result.scores}
    if len(metrics) != len(result.scores):
        raise ValueError(f"{run.label}: two scores of one metric in {[score.metric for score in result.scores]}")
    if wrong := [name for name in metrics if not all(map(is_path_component, name.split("/")))]:
        raise ValueError(f"{run.label}: metric {wrong[0]!r}\n  accepted: parts joined by /, each {NAME_WORDS}")
    body = {
        "metrics": metrics,
        "seconds": dict(result.seconds),
        "notes": dict(result.notes),
        "attempt": attempt,
    }
    _write_json(folder / "result.json", body)


def read_record(run_id: str, url: str, read: Read) -> Record:
    """The entry's figures and what defines it. Raises LedgerError when a file is missing or damaged."""
    spec, body, env = (_json(run_id, url, file, read) for file in ("spec.json", "result.json", "env.json"))
    try:
        if spec.pop("id") != run_id:
            raise damaged(run_id, f"{url}/spec.json", "it describes another run")
        run = Run.from_dict(spec)
    except (KeyError, TypeError) as error:
        raise damaged(run_id, f"{url}/spec.json", f"it lacks or adds fields ({error})") from None
    try:
        return Record(
            id=run_id,
            run=run,
            metrics={name: _read_metric(fields) for name, fields in body["metrics"].items()},
            seconds=body["seconds"],
            notes=body["notes"],
            env=env,
            attempt=body["attempt"],
            url=url,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(run_id, f"{url}/result.json", f"it lacks or adds fields ({error})") from None


def read_table(run_id: str, url: str, file: str, schema: pa.Schema, read: Read) -> pa.Table:
    """A parquet file of the entry. Raises LedgerError when it is missing, damaged or of other columns."""
    try:
        content = read(file)
        table = pq.read_table(io.BytesIO(content), page_checksum_verification=True)
    except FileNotFoundError:
        raise damaged(run_id, f"{url}/{file}", "it is missing") from None
    except (pa.ArrowException, OSError) as error:
        raise damaged(run_id, f"{url}/{file}", f"it is not readable as parquet ({error})") from None
    if table.column_names != schema.names:
        raise damaged(run_id, f"{url}/{file}", f"it has the columns {table.column_names}, expected {schema.names}")
    return table.cast(schema)


def damaged(run_id: str, file: str, why: str) -> LedgerError:
    """The message for a person: which file, what is wrong, what mends it."""
    return LedgerError(
        f"{file}: {why}\n"
        f"  accepted: the file as the run wrote it. Put it back from a copy, or move the entry aside with "
        f"`semray set-aside {run_id}`: the next `semray run` computes it again"
    )


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


def _curve(curve: Sequence[Progress]) -> pa.Table:
    rows = [(point.step, name, value) for point in curve for name, value in _figures(point).items()]
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(list(columns), schema=CURVE)


def _figures(point: Progress) -> dict[str, float]:
    return {
        "loss": point.loss,
        **{f"loss/{term}": value for term, value in point.terms.items()},
        **point.figures,
        "learning_rate": point.learning_rate,
        "sentences_per_second": point.sentences_per_second,
    }


def _metric(score: Score) -> dict[str, Any]:
    value = float(score.value)
    return {
        "value": value if math.isfinite(value) else None,  # JSON has no nan
        "aggregate": score.aggregate,
        "larger_is_better": score.larger_is_better,
    }


def _read_metric(fields: Mapping[str, Any]) -> Metric:
    value = math.nan if fields["value"] is None else float(fields["value"])
    return Metric(value=value, aggregate=fields["aggregate"], larger_is_better=fields["larger_is_better"])


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def _json(run_id: str, url: str, file: str, read: Read) -> dict[str, Any]:
    try:
        content = json.loads(read(file))
    except FileNotFoundError:
        raise damaged(run_id, f"{url}/{file}", "it is missing") from None
    except ValueError as error:
        raise damaged(run_id, f"{url}/{file}", f"it is not readable as JSON ({error})") from None
    if not isinstance(content, dict):
        raise damaged(run_id, f"{url}/{file}", "it holds no JSON object")
    return content
