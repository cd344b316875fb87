"""Where evaluation data is looked for, and tab-separated files as they are: no quoting, no line lost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from corpora.store.errors import CorpusError

VARIABLE = "SEMRAY_DATA"


def found(told: str, names: Sequence[str], *, path: str | None, holds: str, source: str) -> Path:
    """The first of `names` under data.path, then under $SEMRAY_DATA, that is there.

    told: the data in words; holds: what its files look like; source: where it is published. CorpusError names
    every place looked at and what mends it.
    """
    named = os.environ.get(VARIABLE)
    roots = [("data.path", path)] * bool(path) + [(f"${VARIABLE}", named)] * bool(named)
    looked = [(origin, Path(str(root)).expanduser() / name) for origin, root in roots for name in names]
    for _, place in looked:
        if place.exists():
            return place
    places = "".join(f"\n    {origin}: {place}" for origin, place in looked)
    raise CorpusError(
        f"corpora: {told} not found; looked at{places or ' no place: neither data.path nor the variable is set'}\n"
        f"  to get it: {source}\n"
        f"  then: export {VARIABLE}=FOLDER with FOLDER holding {holds}"
    )


def tab_separated(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by column name of each row of a UTF-8 file with a header. A quote is a letter.

    CorpusError when the file cannot be read, lacks one of `columns`, or a row has another number of fields.
    """
    for number, fields in lines(path):
        if number == 1:
            header = fields
            missing = [column for column in columns if column not in header]
            if missing:
                raise CorpusError(f"corpora: {path} lacks the column {missing[0]!r}; it has {', '.join(header)}")
        elif len(fields) != len(header):
            raise CorpusError(f"corpora: {path}, line {number}: {len(fields)} fields, expected {len(header)}")
        else:
            yield number, dict(zip(header, fields, strict=True))


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that is not empty. CorpusError when the file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"corpora: {path} cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r").split("\t")
