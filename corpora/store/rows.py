"""Rows of a person's own tables, by the numbers of their lines: what is none each reader says in its own words."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from corpora.store.errors import CorpusError, first_line

NoRow = Callable[[int, str, str], CorpusError]  # of a line: its number, what it is, what is accepted
EACH_ONCE = "each name once"
SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # that part the columns of a table


def sha256_of(rows: Iterable[object]) -> str:
    """sha256 over rows in their order, each as Python writes it."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()


class NamedTwice(ValueError):
    """An object of JSON with two values by one name, of which one reader takes the first, another the last."""


def json_lines(lines: Iterable[str], no_row: NoRow) -> Iterator[tuple[int, Any]]:
    """The number and the content of every line of JSON that is not blank.

    By "\\n" alone: `splitlines` would cut at characters that stand inside of texts, such as U+2028.
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
    """The rows of a table with a head of names, each of which stands there once."""
    check_head(reader, partial(no_row, 1))
    for row in reader:
        if None in row or None in row.values():
            raise no_row(reader.line_num, "has another number of columns", "as many as its head")
        yield row


def check_head(reader: csv.DictReader[str], wrong: Callable[[str, str], CorpusError]) -> None:
    """CorpusError for a head whose names are parted by another sign, or that has one of them twice."""
    names, sign = reader.fieldnames or (), reader.reader.dialect.delimiter
    if len(names) == 1 and (other := next((one for one in SIGNS if one != sign and one in names[0]), None)):
        raise wrong(f"has columns parted by {SIGNS[other]}", f"parted by {SIGNS[sign]}")
    check_each_once(names, wrong)


def check_each_once(names: Iterable[str], wrong: Callable[[str, str], CorpusError]) -> None:
    """CorpusError for a head in which a name stands twice: of its columns a reader would see the last alone.

    Nobody asks for what has no name. wrong: of what a head says, and what is accepted.
    """
    if twice := _twice(filter(None, names)):
        raise wrong(f"names two columns {twice!r}", EACH_ONCE)


def _twice(names: Iterable[str]) -> str | None:
    """The first name that comes twice."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object whose names stand there once. NamedTwice for another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NamedTwice(f"names {_twice(name for name, _ in pairs)!r} twice")
    return found


def number_of(text: str) -> float:
    """ValueError also for what is a number to Python alone: it reads `1_5`, a slip of 1.5, as 15."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def number_within(text: str, largest: float) -> float:
    """A number from 0 to `largest`. ValueError for any other, NaN among them, and for no number."""
    value = number_of(text)
    if not 0 <= value <= largest:
        raise ValueError(text)
    return value
