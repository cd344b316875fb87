"""Reads the rows of a person's tables with their line numbers; each reader words the errors itself."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from corpora.store.errors import CorpusError, first_line

NoRow = Callable[[int, str, str], CorpusError]  # (line number, problem, what is accepted) -> error
EACH_ONCE = "each name once"
csv.field_size_limit(1 << 30)  # of the process. A cell may hold a whole document; by itself csv stops at 131,072
SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # that separate the columns of a table


def sha256_of(rows: Iterable[object]) -> str:
    """sha256 over rows in their order, each as Python writes it."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()


class NamedTwice(ValueError):
    """A JSON object has a name twice: some readers take its first value, others its last."""


def json_lines(lines: Iterable[str], no_row: NoRow) -> Iterator[tuple[int, Any]]:
    """The number and the content of every JSON line that is not blank.

    lines: split at "\\n" alone, as `splitlines` would cut at characters inside of texts, such as U+2028.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line, object_pairs_hook=object_of)
        except NamedTwice as error:
            raise no_row(number, str(error), EACH_ONCE) from None
        except (ValueError, RecursionError) as error:
            raise no_row(number, f"is no JSON ({first_line(error)})", "an object in every line") from None
        yield number, content


def as_wide_as_head(reader: csv.DictReader[str], no_row: NoRow) -> Iterator[dict[str, str]]:
    """The rows of a table with a head of distinct names; an error for a row of another width."""
    check_head(reader, partial(no_row, 1))
    for row in reader:
        if None in row or None in row.values():
            raise no_row(reader.line_num, "has another number of columns", "as many as its head")
        yield row


def check_head(reader: csv.DictReader[str], wrong: Callable[[str, str], CorpusError]) -> None:
    """Raise CorpusError for a head with another separator, or with a name twice."""
    names, sign = reader.fieldnames or (), reader.reader.dialect.delimiter
    if len(names) == 1 and (other := next((one for one in SIGNS if one != sign and one in names[0]), None)):
        raise wrong(f"has columns parted by {SIGNS[other]}", f"parted by {SIGNS[sign]}")
    check_each_once(names, wrong)


def check_each_once(names: Iterable[str], wrong: Callable[[str, str], CorpusError]) -> None:
    """Raise CorpusError for a head with a name twice, as readers would see the last of its columns alone.

    Columns without a name may repeat. wrong: (problem, what is accepted) -> error.
    """
    if twice := _twice(filter(None, names)):
        raise wrong(f"names two columns {twice!r}", EACH_ONCE)


def _twice(names: Iterable[str]) -> str | None:
    """The first name that comes twice."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object with distinct names. NamedTwice if a name repeats."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NamedTwice(f"names {_twice(name for name, _ in pairs)!r} twice")
    return found


def number_of(text: str) -> float:
    """The number in a text. ValueError also for Python's own forms: it reads `1_5`, a slip of 1.5, as 15."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def number_within(text: str, largest: float) -> float:
    """A number from 0 to `largest`. ValueError for other numbers, NaN and other texts."""
    value = number_of(text)
    if not 0 <= value <= largest:
        raise ValueError(text)
    return value
