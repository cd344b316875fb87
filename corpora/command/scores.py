"""The file of scores that a command leaves: `scores.csv`, `scores.parquet` or `scores.json`, a row for each item.

    metric, item, score          columns that must be there; in JSON a list of objects, or {metric: score} alone
    task                         the metric is then called task/metric
    group                        items that are resampled together; without it each item is its own group
    gold                         the true value that the score is compared with
    larger_is_better             true or false; must agree with what the study declares

A metric with one row and no item is a figure by itself. docs/command.md is the specification for users.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from corpora.sources.texts import cell_as_text, is_text
from corpora.store.errors import CorpusError, first_line
from corpora.store.rows import (
    EACH_ONCE,
    NamedTwice,
    as_wide_as_head,
    check_each_once,
    json_lines,
    number_of,
    object_of,
)

FILES = ("scores.csv", "scores.parquet", "scores.json")
NEEDED, OPTIONAL = ("metric", "score"), ("item", "task", "group", "gold", "larger_is_better")
ROWS, BYTES = 2_000_000, 1 << 30
LARGEST = 1e300  # sums and differences of larger figures need not be floats
COLUMNS_SHOWN, LETTERS_SHOWN = 8, 60  # of a table, in the message on a missing column
CheckNames = Callable[[Sequence[str]], None]
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass
class MetricRows:
    """The rows of one metric. items, groups: N names, or none for a figure by itself; scores, gold: N numbers."""

    scores: list[float] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    gold: list[float] = field(default_factory=list)
    larger_is_better: set[bool] = field(default_factory=set)


def read_scores(path: Path) -> dict[str, MetricRows]:
    """The rows of every metric, in the order of the file. CorpusError names file, row, column and value."""
    columns: dict[str, MetricRows] = {}
    for number, row in enumerate(rows_of(path, NEEDED, OPTIONAL), 1):
        add(path, number, row, columns)
    if not columns:
        raise wrong(path, "holds no row", "one for each item of each metric, or one for each metric")
    for metric, column in columns.items():
        check(path, metric, column)
    return columns


def rows_of(
    path: Path, needed: Sequence[str], optional: Sequence[str], also: str = ""
) -> Iterator[Mapping[str, Any]]:
    """The rows of a table of scores, by its suffix. CorpusError for other columns, or an unreadable file.

    also: what else is accepted, for the message on missing columns.
    """
    if path.stat().st_size > BYTES:
        raise wrong(path, f"is larger than {BYTES >> 30} GiB", "scores, one row for each item")
    for number, row in enumerate(_rows(path, partial(_check_names, path, needed, optional, also)), 1):
        if number > ROWS:
            raise wrong(path, f"has more than {ROWS:,} rows", "fewer items or metrics")
        yield row


def add(path: Path, number: int, row: Mapping[str, Any], columns: dict[str, MetricRows]) -> None:
    """Add a row to its metric's rows. CorpusError names what is wrong with it."""

    text = partial(cell_text, path, number, row)

    def figure(name: str) -> float:
        try:
            value = number_of(text(name))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise wrong(path, f"row {number}: {name} = {text(name) or row.get(name)!r}", "a finite number")
        if abs(value) > LARGEST:
            raise wrong(path, f"row {number}: {name} = {text(name)!r}", f"a number up to {LARGEST:g} in size")
        return value

    task, metric, item = text("task"), text("metric"), text("item")
    if not metric:
        raise wrong(path, f"row {number}: metric is empty", "the name of a metric in every row")
    column = columns.setdefault(f"{task}/{metric}" if task else metric, MetricRows())
    column.scores.append(figure("score"))
    if item:
        column.items.append(item)
        column.groups.append(text("group") or item)
    if text("gold"):
        column.gold.append(figure("gold"))
    if written := text("larger_is_better").lower():
        if written not in TRUTHS:
            raise wrong(path, f"row {number}: larger_is_better = {written!r}", "true or false")
        column.larger_is_better.add(TRUTHS[written])


def cell_text(path: Path, number: int, row: Mapping[str, Any], name: str) -> str:
    """The cell of a column as text; "" if empty or NaN. CorpusError for text that UTF-8 cannot hold."""
    found = cell_as_text(row.get(name))
    if not is_text(found):
        raise wrong(path, f"row {number}: {name} = {found!r}", "a text without halves of surrogate pairs")
    return found


def check(path: Path, metric: str, column: MetricRows) -> None:
    """Raise CorpusError if the rows of a metric are inconsistent: items missing or repeated, gold in some rows."""
    count = len(column.scores)
    if not column.items and count > 1:
        raise wrong(path, f"{metric}: {count} rows and no items", "a name in `item` for each, or one row alone")
    if column.items and len(column.items) < count:
        raise wrong(path, f"{metric}: an item in some rows and not in others", "a name in `item` for each")
    if len(set(column.items)) < len(column.items):
        twice, _ = Counter(column.items).most_common(1)[0]
        raise wrong(path, f"{metric}: the item {twice!r} stands there twice", "each item once for a metric")
    if column.gold and len(column.gold) < count:
        raise wrong(
            path, f"{metric}: gold in some rows and not in others", "gold in all rows of a metric, or none"
        )


def _rows(path: Path, check_names: CheckNames) -> Iterator[Mapping[str, Any]]:
    try:
        if path.suffix in (".json", ".jsonl"):
            yield from _json_rows(path, check_names)
        else:
            yield from _table_rows(path, check_names)
    except NamedTwice as error:
        raise wrong(path, str(error), EACH_ONCE) from None
    except (ValueError, OSError, csv.Error, RecursionError, OverflowError) as error:
        # the last two: too deeply nested JSON, dates of parquet that Python cannot represent
        raise wrong(path, f"cannot be read ({first_line(error)})", "a table of scores") from None


def _json_rows(path: Path, check_names: CheckNames) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        content: Any = [row for _, row in json_lines(lines, partial(_no_row, path))]
    else:
        content = json.loads(path.read_bytes(), object_pairs_hook=object_of)
    if isinstance(content, dict):
        content = [{"metric": metric, "score": score} for metric, score in content.items()]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise wrong(path, "is neither a list of objects nor {metric: score}", "one of both")
    for row in content:
        check_names(list(row))
        yield row


def _table_rows(path: Path, check_names: CheckNames) -> Iterator[Mapping[str, Any]]:
    import pyarrow.parquet as pq

    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            names = reader.fieldnames or []
            check_each_once(names, partial(wrong, path))
            check_names(names)
            yield from as_wide_as_head(reader, partial(_no_row, path))
        return
    file = pq.ParquetFile(path)
    check_each_once(file.schema_arrow.names, partial(wrong, path))
    check_names(file.schema_arrow.names)
    for batch in file.iter_batches():
        yield from batch.to_pylist()


def _check_names(
    path: Path, needed: Sequence[str], optional: Sequence[str], also: str, names: Sequence[str]
) -> None:
    lacking = [name for name in needed if name not in names]
    strange = [name for name in names if name not in (*needed, *optional)]
    if lacking or strange:
        problem = f"lacks the column {lacking[0]}; {_has(names)}" if lacking else f"has a column {strange[0]!r}"
        parted = ", parted by commas" if len(names) == 1 and re.search(r"[;\t|]", names[0]) else ""
        accepted = f"{', '.join(needed)}, and any of {', '.join(optional)}{parted}{also if lacking else ''}"
        raise wrong(path, problem, accepted)


def _has(names: Sequence[str]) -> str:
    """The first columns of a table in words, for the message on a missing one."""
    if not names:
        return "it has none"
    first = ", ".join(repr(str(name)[:LETTERS_SHOWN]) for name in names[:COLUMNS_SHOWN])
    return f"it has {first}" + (f" and {len(names) - COLUMNS_SHOWN} more" if len(names) > COLUMNS_SHOWN else "")


def _no_row(path: Path, line: int, problem: str, accepted: str) -> CorpusError:
    return wrong(path, f"line {line} {problem}", accepted)


def wrong(path: Path, problem: str, accepted: str) -> CorpusError:
    """The error for a person about a table: its problem and what is accepted."""
    return CorpusError(f"{path}: {problem}\n  accepted: {accepted}")
