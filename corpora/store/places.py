"""Where evaluation data is looked for, and files of rows as they are: without quoting no line is lost."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corpora.store.errors import CorpusError
from corpora.store.rows import number_within

VARIABLE = "SEMRAY_DATA"


def roots(path: str | None) -> list[tuple[str, Path]]:
    """The folders to look in, each with what names it: data.path, then $SEMRAY_DATA."""
    named = (("data.path", path), (f"${VARIABLE}", os.environ.get(VARIABLE)))
    return [(origin, Path(root).expanduser()) for origin, root in named if root]


def first_of(
    names: Sequence[str], path: str | None, is_there: Callable[[Path], bool] = Path.exists
) -> tuple[Path | None, list[str]]:
    """The first of `names` under data.path, then under $SEMRAY_DATA, that is there; and the places before it."""
    looked: list[str] = []
    for origin, root in roots(path):
        for name in names:
            if is_there(root / name):
                return root / name, looked
            looked.append(f"{origin}: {root / name}")
    return None, looked


def found(told: str, names: Sequence[str], *, path: str | None, holds: str, source: str) -> Path:
    """As `first_of`. told: the data in words; holds: what its files look like; source: where it is published.

    CorpusError names every place looked at and what mends it.
    """
    place, looked = first_of(names, path)
    if place is None:
        raise not_found(told, looked, holds=holds, source=source)
    return place


def not_found(told: str, looked: Sequence[str], *, holds: str, source: str) -> CorpusError:
    """The one message for data that is nowhere: what was looked at, where it is published, what mends it."""
    places = "".join(f"\n    {place}" for place in looked)
    return CorpusError(
        f"corpora: {told} not found; looked at{places or ' no place: neither data.path nor the variable is set'}\n"
        f"  to get it: {source}\n"
        f"  then: export {VARIABLE}=FOLDER with FOLDER holding {holds}"
    )


def named_file(path: str | None, *, setting: str, variable: str, file: str, mending: str) -> Path | None:
    """The file at the setting's `path` or in that folder, else at the variable's; None where neither is set.

    A place that was named is never passed over for another. CorpusError where it does not hold the file.
    """
    for named, origin in ((path, setting), (os.environ.get(variable), f"${variable}")):
        if named:
            place = Path(named).expanduser()
            place = place / file if place.is_dir() else place
            if not place.is_file():
                raise CorpusError(f"corpora: {origin} = {named!r} holds no {file}\n  to get it: {mending}")
            return place
    return None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """CorpusError for what keeps a file from being read."""
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
        told = f"{at}: {column} = {row[column]!r}"
        raise CorpusError(f"{told}\n  accepted: a number from 0 to {largest:g}") from None


def quoted_rows(path: Path, columns: Sequence[str], delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by column name of each row of a UTF-8 file with a header and cells in quotes.

    A row that ends early has "" in the rest. CorpusError as of `tab_separated`.
    """
    with _named(path), path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter, restval="")
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
    """The lines of a file as they stand, blank ones too: lines of several files belong together by their numbers.

    By "\n" alone: `splitlines` would cut at characters that stand inside of texts, such as U+2028.
    """
    return [line.rstrip("\r") for line in text_of(path).removesuffix("\n").split("\n")]


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that is not empty. CorpusError when the file cannot be read or has none:
    what is left of a download would be a set without rows."""
    text = text_of(path)
    if not text.strip():
        raise CorpusError(f"corpora: {path} holds no row")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r").split("\t")
