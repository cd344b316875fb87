"""Rows of a person's own tables, by the numbers of their lines: what is none each reader says in its own words."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from corpora.store.errors import CorpusError, first_line

NoRow = Callable[[int, str, str], CorpusError]  # of a line: its number, what it is, what is accepted
EACH_ONCE = "each name once"


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
    if twice := named_twice(reader.fieldnames or ()):
        raise no_row(reader.line_num, f"names two columns {twice!r}", EACH_ONCE)
    for row in reader:
        if None in row or None in row.values():
            raise no_row(reader.line_num, "has another number of columns", "as many as its head")
        yield row


def named_twice(names: Iterable[str]) -> str | None:
    """The first name that stands in a head once more: of its columns a reader would see the last alone.

    Nobody asks for what has no name.
    """
    seen = set[str]()
    for name in filter(None, names):
        if name in seen:
            return name
        seen.add(name)
    return None


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object whose names stand there once. NamedTwice for another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        raise NamedTwice(f"names {next(name for name in times if times[name] > 1)!r} twice")
    return found
