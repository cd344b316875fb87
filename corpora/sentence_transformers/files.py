"""Rows of one's own files, by their suffix: CSV and TSV with a head of names, JSON lines, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora.store.errors import CorpusError, first_line

Row = Mapping[str, Any]
LETTERS_SHOWN = 60  # of a line that is no row


def rows_of_file(file: Path) -> Iterator[Row]:
    """CorpusError names a line that is no row; OSError, ValueError or csv.Error for what cannot be read."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from pq.read_table(file).to_pylist()
        return
    text = file.read_text(encoding="utf-8-sig")
    lines = text.split("\n")  # `splitlines` would cut at characters that stand inside of texts, such as U+2028
    if file.suffix == ".jsonl":
        yield from _objects(file, lines)
    elif file.suffix == ".csv":
        yield from _as_wide_as_head(file, csv.DictReader(io.StringIO(text, newline=""), strict=True))
    else:
        yield from _as_wide_as_head(file, csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def _objects(file: Path, lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _no_row(file, number, f"is no JSON ({first_line(error)})", "an object in every line") from None
        if not isinstance(row, dict):
            shown = line[:LETTERS_SHOWN] + ("…" if len(line) > LETTERS_SHOWN else "")
            raise _no_row(file, number, f"is {shown}", "an object in every line, such as {column: text}")
        yield row


def _as_wide_as_head(file: Path, reader: csv.DictReader[str]) -> Iterator[Row]:
    for row in reader:
        if None in row or None in row.values():
            raise _no_row(file, reader.line_num, "has another number of columns", "as many as its head")
        yield row


def _no_row(file: Path, line: int, told: str, accepted: str) -> CorpusError:
    return CorpusError(f"{file}, line {line} {told}\n  accepted: {accepted}")
