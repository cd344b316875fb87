"""Finds evaluation data, and reads text files of rows, in which a quote is a plain character by default."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corpora.store.errors import CorpusError
from corpora.store.rows import number_within

VARIABLE = "SEMRAY_DATA"


def named_path(name: str | Path) -> Path:
    """The path that a person wrote, with `~` expanded; `~name` of a name that nobody has here stays as it is."""
    return Path(os.path.expanduser(name))


def roots(path: str | None) -> list[tuple[str, Path]]:
    """The folders to search, each with its origin: data.path, then $SEMRAY_DATA."""
    named = (("data.path", path), (f"${VARIABLE}", os.environ.get(VARIABLE)))
    return [(origin, named_path(root)) for origin, root in named if root]


def first_of(
    names: Sequence[str], path: str | None, is_there: Callable[[Path], bool] = Path.exists
) -> tuple[Path | None, list[str]]:
    """The first of `names` that exists under data.path, then $SEMRAY_DATA; and the places searched before it."""
    looked: list[str] = []
    for origin, root in roots(path):
        for name in names:
            if is_there(root / name):
                return root / name, looked
            looked.append(f"{origin}: {root / name}")
    return None, looked


def found(what: str, names: Sequence[str], *, path: str | None, holds: str, source: str) -> Path:
    """As `first_of`. what: the data in words; holds: its files in words; source: where it is published.

    CorpusError names every place searched and how to get the data.
    """
    place, looked = first_of(names, path)
    if place is None:
        raise not_found(what, looked, holds=holds, source=source)
    return place


def not_found(what: str, looked: Sequence[str], *, holds: str, source: str) -> CorpusError:
    """The error for missing data: the places searched, where it is published, how to get it."""
    places = "".join(f"\n    {place}" for place in looked)
    return CorpusError(
        f"corpora: {what} not found; looked at{places or ' no place: neither data.path nor the variable is set'}\n"
        f"  to get it: {source}\n"
        f"  then: export {VARIABLE}=FOLDER with FOLDER holding {holds}"
    )


def named_file(path: str | None, *, setting: str, variable: str, file: str, mending: str) -> Path | None:
    """The file at the setting's `path` or in that folder, else at the variable's; None if neither is set.

    CorpusError if the named place lacks the file; another place is never used instead.
    """
    for named, origin in ((path, setting), (os.environ.get(variable), f"${variable}")):
        if named:
            place = named_path(named)
            place = place / file if place.is_dir() else place
            if not place.is_file():
                raise CorpusError(f"corpora: {origin} = {named!r} holds no {file}\n  to get it: {mending}")
            return place
    return None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Raise CorpusError for what keeps a file from being read."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise CorpusError(f"corpora: {path} cannot be read: {error}\n  accepted: text in UTF-8") from error
    except (OSError, csv.Error) as error:
        raise CorpusError(f"corpora: {path} cannot be read: {error}") from error


def text_of(path: Path, encoding: str = "utf-8-sig") -> str:
    """What a text file holds, less a mark before its first letter. CorpusError where it cannot be read."""
    with _named(path):
        return path.read_text(encoding=encoding)


def tab_separated(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by column name of each row of a UTF-8 file with a header. A quote is a letter.

    CorpusError when the file cannot be read, lacks one of `columns` or any row, or a row has another number of
    fields.
    """
    (_, header), *rows = lines(path)
    _check_header(path, header, columns)
    if not rows:
        raise CorpusError(f"corpora: {path} holds no row below its header")
    for number, fields in rows:
        if len(fields) != len(header):
            raise CorpusError(f"corpora: {path}, line {number}: {len(fields)} fields, expected {len(header)}")
        yield number, dict(zip(header, fields, strict=True))


def number_in(row: Mapping[str, str], column: str, largest: float, at: str) -> float:
    """A column's number from 0 to `largest`. CorpusError for anything else. at: where the row stands."""
    try:
        return number_within(row[column], largest)
    except ValueError:
        problem = f"{at}: {column} = {row[column]!r}"
        raise CorpusError(f"{problem}\n  accepted: a number from 0 to {largest:g}") from None


def quoted_rows(path: Path, columns: Sequence[str], delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by column name of each row of a UTF-8 file with a header and cells in quotes.

    A row that ends early has "" in the rest. CorpusError as of `tab_separated`.
    """
    with _named(path), path.open(encoding="utf-8-sig", newline="") as file:
        # strict: else a quote that is not closed takes the rows after it
        reader = csv.DictReader(file, delimiter=delimiter, restval="", strict=True)
        _check_header(path, reader.fieldnames or (), columns)
        row = None
        for row in reader:
            yield reader.line_num, row
        if row is None:
            raise CorpusError(f"corpora: {path} holds no row below its header")


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    if missing := [column for column in columns if column not in header]:
        raise CorpusError(f"corpora: {path} lacks the column {missing[0]!r}; it has {', '.join(header)}")


def every_line(path: Path) -> list[str]:
    """All lines of a file, blank ones too, as lines of several files may belong together by their numbers.

    Lines end at "\n" alone: `splitlines` would cut at characters inside of texts, such as U+2028.
    """
    return [line.rstrip("\r") for line in text_of(path).removesuffix("\n").split("\n")]


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that is not empty. CorpusError if the file cannot be read or is blank,
    as a broken download would be a set without rows."""
    text = text_of(path)
    if not text.strip():
        raise CorpusError(f"corpora: {path} holds no row")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r").split("\t")
