"""One entry of the ledger: the files that a training, or scoring on one task, leaves. Read with suspicion.

    <run id>/                  spec.json result.json env.json curve.parquet model/ seal.json
    <run id>.<scores id>/      spec.json result.json env.json scores.parquet seal.json [taken_for.parquet]

Ledgers of before hold both in one, `<run id>/` with scores.parquet beside curve.parquet and no seal; those entries
stay readable, and count as unsealed.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluators.metrics.scores import Aggregate
from orchestration.ledger.columns import DecodedColumns, OtherColumns, numbers
from orchestration.ledger.environment import environment
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.seal import CHANGED, SEAL, each_once, read_seal, write_seal
from orchestration.study.names import NAME_WORDS, is_path_component, printable
from orchestration.study.run import Result, Run, Scored, Trained, former_id
from trainers.engine.meter import together

if TYPE_CHECKING:
    from evaluators.metrics.scores import Score
    from trainers.engine.world import Progress

AGGREGATES = get_args(Aggregate)
FORMAT = 2  # of the entry's files; 1 had no seal, and scores beside the training
# Beside seal and model; a passport has these
ENTRY_FILES = ("spec.json", "result.json", "env.json", "curve.parquet", "scores.parquet")
ITEM_FILE = "scores.parquet"
TAKEN_FOR = "taken_for.parquet"  # what items were confused with, where it is known; no figure rests on it
ITEMS = pa.schema(
    {
        "metric": pa.dictionary(pa.int32(), pa.string()),
        "item_id": pa.string(),
        "group_id": pa.string(),
        "value": pa.float64(),
        "gold": pa.float64(),
    }
)
CONFUSED = pa.schema({"metric": pa.string(), "item_id": pa.string(), "taken_for": pa.string()})
CURVE = pa.schema({"step": pa.int64(), "name": pa.string(), "value": pa.float64()})

Read = Callable[[str], bytes]  # file name within the entry -> content; FileNotFoundError


def as_json(content: bytes) -> Any:
    return STRICT.decode(content.decode(json.detect_encoding(content), "surrogatepass"))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=each_once)

as_env = lru_cache(maxsize=64)(as_json)  # runs of one machine have the same one: read, and kept, once


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a run, and the entry that holds its items.

    aggregate as in `evaluators.metrics.scores.Score`; value is nan where it has none.
    """

    value: float
    aggregate: Aggregate | None
    larger_is_better: bool
    entry: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A run as the ledger holds it: its training, or its training with its scores. url is where its files lie.

    sealed: False where an entry was written before entries had seals. items_digest: the sealed one of the items of
    the entry, where this is of one with scores. began: when its training began, in Unix
    time; None in entries that do not tell. cost: as `trainers.engine.meter` counts it; empty in entries of before.
    """

    id: str
    run: Run
    metrics: Mapping[str, Metric]
    seconds: Mapping[str, float]
    notes: Mapping[str, Any]
    env: Mapping[str, Any]
    attempt: int
    url: str
    sealed: bool = True
    items_digest: str = ""
    began: float | None = None
    cost: Mapping[str, float] = field(default_factory=dict)

    def with_scores(self, scores: Record) -> Record:
        """The record with what the run scored on one task more."""
        seconds = {
            name: self.seconds.get(name, 0.0) + scores.seconds.get(name, 0.0)
            for name in (*self.seconds, *(new for new in scores.seconds if new not in self.seconds))
        }
        return replace(
            self,
            metrics={**self.metrics, **scores.metrics},
            seconds=seconds,
            notes={**self.notes, **scores.notes},
            sealed=self.sealed and scores.sealed,
            cost=together(self.cost, scores.cost),
        )


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of one entry, each held against the entry's seal when it is read.

    columns: what was decoded of other entries.
    """

    entry: str
    url: str
    raw: Read
    seal: Mapping[str, str] | None = field(default=None)
    columns: DecodedColumns = field(default_factory=DecodedColumns)

    @staticmethod
    def of(entry: str, url: str, raw: Read, columns: DecodedColumns) -> Files:
        """LedgerError for a seal that cannot be read. Without one only entries of before are accepted, later."""
        seal = None
        try:
            seal = read_seal(raw(SEAL))
        except FileNotFoundError:
            pass
        except (ValueError, RecursionError, OSError) as error:
            plain = Files(entry=entry, url=url, raw=raw)
            raise plain.damaged(SEAL, f"it is no seal ({error})") from None
        return Files(entry=entry, url=url, raw=raw, seal=seal, columns=columns)

    @property
    def run_id(self) -> str:
        return self.entry.partition(".")[0]

    def read(self, file: str) -> bytes:
        """A file's content. LedgerError when it is missing, no file, or not as it was sealed."""
        try:
            content = self.raw(file)
        except FileNotFoundError:
            raise self.damaged(file, "it is missing") from None
        except OSError as error:
            raise self.damaged(file, f"it cannot be read ({error.strerror or error})") from None
        if self.seal is not None and hashlib.sha256(content).hexdigest() != self.seal.get(file):
            raise self.damaged(file, CHANGED)
        return content

    def json(self, file: str, read: Callable[[bytes], Any] = as_json) -> dict[str, Any]:
        """A JSON object of the entry."""
        try:
            content = read(self.read(file))
        except (ValueError, RecursionError) as error:
            raise self.damaged(file, f"it is not readable as JSON ({error or type(error).__name__})") from None
        if not isinstance(content, dict):
            raise self.damaged(file, "it holds no JSON object")
        return content

    def table(self, file: str, schema: pa.Schema) -> pa.Table:
        """A parquet file of the entry. LedgerError when it is damaged or of other columns."""
        content = self.read(file)
        try:
            return self.columns.table(content, schema)
        except OtherColumns as error:
            raise self.damaged(file, str(error)) from None
        except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
            raise self.damaged(file, f"it is not readable as parquet ({error})") from None

    def damaged(self, file: str, why: str) -> LedgerError:
        """The message for a person: which file, of which run, what is wrong, what mends it."""
        return LedgerError(
            f"{self.url}/{printable(file)}: {printable(why)}\n"
            f"  accepted: the file as run {self.run_id} wrote it. Put it back from a copy, or move the entry "
            f"aside with `semray set-aside {self.entry}`: the next `semray run` computes it again"
        )


# Writing


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
    pq.write_table(_items(scores), folder / "scores.parquet", write_page_checksum=True)
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


# Reading


def read_training(files: Files) -> Record:
    """What defines a run and what its training left. LedgerError when a file is missing or damaged.

    Of an entry of before: its scores too.
    """
    spec, body, env = files.json("spec.json"), files.json("result.json"), files.json("env.json", as_env)
    former = "evaluate" in spec
    if files.seal is None and not former:
        raise files.damaged(SEAL, "it is missing")
    if not former:
        return _record(files, spec, body, env, lambda run: run.id)
    return _record(files, spec, body, env, lambda _: former_id(spec), scored=True)


def read_scores(files: Files) -> Record:
    """What a run scored on one task. LedgerError when a file is missing or damaged."""
    if files.seal is None:
        raise files.damaged(SEAL, "it is missing")
    spec, body, env = files.json("spec.json"), files.json("result.json"), files.json("env.json", as_env)
    task, rows = spec.pop("task", None), spec.pop("rows", None)
    if not isinstance(task, str) or not isinstance(rows, str):
        raise files.damaged("spec.json", "it names no task")
    named = {**spec, "tasks": {task: rows}}
    return _record(files, named, body, env, lambda run: run.entry(task), scored=True)


def _run(fields: Mapping[str, Any]) -> Run:
    return Run.from_dict({name: value for name, value in fields.items() if name != "id"})


def read_items(files: Files) -> pa.Table:
    """Item-level scores: metric, item_id, group_id, value, gold (null where the metric has none)."""
    return files.table(ITEM_FILE, ITEMS)


def read_taken_for(files: Files) -> pa.Table | None:
    """What items were confused with: metric, item_id, taken_for; None where the entry does not tell."""
    return files.table(TAKEN_FOR, CONFUSED) if files.seal and TAKEN_FOR in files.seal else None


def of_metric(items: pa.Table, metric: str) -> pa.Table:
    """The items of one metric."""
    found = _told(items, metric)
    return items.slice(0, 0) if found is None else items.filter(found)


def is_of_metric(items: pa.Table, metric: str) -> np.ndarray:
    """Which rows are of one metric. -> (rows,) bool"""
    found = _told(items, metric)
    return np.zeros(len(items), bool) if found is None else numbers(found.cast(pa.uint8())).astype(bool)


def _told(items: pa.Table, metric: str) -> pa.ChunkedArray | None:
    """Of each row whether it is of one metric; None where none is.

    The value to compare with is taken from the column, chunk by chunk: to make one of a text, or one array of the
    chunks, pyarrow imports pandas, which is a quarter of a second of every command.
    """
    names = {name.as_py(): name for chunk in items["metric"].chunks for name in chunk.dictionary}
    return pc.equal(items["metric"].cast(pa.string()), names[metric]) if metric in names else None


def read_curve(files: Files) -> pa.Table:
    """The training curve: step, name ("loss", "loss/<term>", "learning_rate", …), value."""
    return files.table("curve.parquet", CURVE)


def read_checked_items(files: Files, record: Record) -> pa.Table:
    """As `read_items`. LedgerError unless every figure that is made of items has them, and no other figure has."""
    table = read_items(files)
    names = files.columns.distinct(table["metric"])  # those that rows have: a dictionary may hold more
    own = {name: metric for name, metric in record.metrics.items() if metric.entry == files.entry}
    for name, metric in own.items():
        if metric.aggregate is not None and name not in names:
            raise files.damaged("scores.parquet", f"it lacks the items of {name}")
    if strange := [name for name in names if name not in own or own[name].aggregate is None]:
        raise files.damaged(
            "scores.parquet", f"it holds items of {strange[0]}, which by result.json is not made of any"
        )
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
    """name_of: the name that an entry of such a run has. scored: whether it is an entry with metrics."""
    with _whole(files, "spec.json"):
        run, named = _run(spec), spec["id"]
        own = name_of(run)
    if own != files.entry or named != files.run_id:
        raise files.damaged("spec.json", f"it describes another run: its fields give {own}")
    with _whole(files, "env.json"):
        if not isinstance(env["libraries"], dict):
            raise TypeError("libraries maps no names to versions")
    with _whole(files, "result.json"):
        if body.get("format", 1) not in (1, FORMAT):
            raise ValueError(f"format {body['format']}, known are 1 and {FORMAT}: a later semray wrote it")
        seconds, cost = (
            {str(name): float(value) for name, value in told.items()}
            for told in (body["seconds"], body.get("cost", {}))
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


def _metrics(told: Mapping[str, Any], entry: str) -> dict[str, Metric]:
    return {name: _read_metric(fields, entry) for name, fields in told.items()}


@contextmanager
def _whole(files: Files, file: str) -> Iterator[None]:
    """LedgerError that names the file, for whatever its fields make fail within the block."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise files.damaged(file, f"it lacks or adds fields ({error})") from None


def _read_metric(fields: Mapping[str, Any], entry: str) -> Metric:
    value = math.nan if fields["value"] is None else float(fields["value"])
    plain = fields["value"] is None or type(fields["value"]) in (int, float)
    if not plain or not isinstance(fields["larger_is_better"], bool) or math.isinf(value):
        raise ValueError("a metric is a finite value, or null, and larger_is_better true or false")
    if fields["aggregate"] is not None and fields["aggregate"] not in AGGREGATES:
        raise ValueError(f"no aggregate {fields['aggregate']!r}")
    return Metric(
        value=value, aggregate=fields["aggregate"], larger_is_better=fields["larger_is_better"], entry=entry
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


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
