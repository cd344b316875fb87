"""Rows of a person's own tables, by the numbers of their lines: what is none each reader says in its own words."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from corpora.store.errors import CorpusError, first_line

NoRow = Callable[[int, str, str], CorpusError]  # of a line: its number, what it is, what is accepted


def json_lines(lines: Iterable[str], no_row: NoRow) -> Iterator[tuple[int, Any]]:
    """The number and the content of every line of JSON that is not blank.

    By "\\n" alone: `splitlines` would cut at characters that stand inside of texts, such as U+2028.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise no_row(number, f"is no JSON ({first_line(error)})", "an object in every line") from None
        yield number, content


def as_wide_as_head(reader: csv.DictReader[str], no_row: NoRow) -> Iterator[dict[str, str]]:
    """The rows of a table with a head of names."""
    for row in reader:
        if None in row or None in row.values():
            raise no_row(reader.line_num, "has another number of columns", "as many as its head")
        yield row
