"""Reads rows of a user's files by their suffix: CSV and TSV with a head of names, JSON lines, Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corpora.store.errors import CorpusError
from corpora.store.rows import NoRow, as_wide_as_head, check_each_once, json_lines

Row = Mapping[str, Any]
LETTERS_SHOWN = 60  # of a bad line, in its error


def rows_of_file(file: Path) -> Iterator[Row]:
    """The rows of a file. CorpusError names a bad line; OSError, ValueError or csv.Error if it is unreadable."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        check_each_once(pq.read_schema(file).names, partial(_wrong, str(file)))
        yield from pq.read_table(file).to_pylist()
        return
    no_row, text = partial(_no_row, file), file.read_text(encoding="utf-8-sig")
    lines = text.split("\n")
    if file.suffix == ".jsonl":
        yield from _objects(lines, no_row)
    elif file.suffix == ".csv":
        yield from as_wide_as_head(csv.DictReader(io.StringIO(text), strict=True), no_row)
    else:
        yield from as_wide_as_head(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), no_row)


def _objects(lines: Sequence[str], no_row: NoRow) -> Iterator[Row]:
    for number, row in json_lines(lines, no_row):
        if not isinstance(row, dict):
            line = lines[number - 1]
            shown = line[:LETTERS_SHOWN] + ("…" if len(line) > LETTERS_SHOWN else "")
            raise no_row(number, f"is {shown}", "an object in every line, such as {column: text}")
        yield row


def _no_row(file: Path, line: int, problem: str, accepted: str) -> CorpusError:
    return _wrong(f"{file}, line {line}", problem, accepted)


def _wrong(where: str, problem: str, accepted: str) -> CorpusError:
    return CorpusError(f"{where} {problem}\n  accepted: {accepted}")
