"""Rows of texts in columns: from the field's benchmarks, from files, and from data sets in the hub's form."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpora.benchmarks import sts
from corpora.san import sentences
from corpora.sentence_transformers.data import FILES, GRADED, TRIPLETS, RecipeData, TrainingSet
from corpora.sources.texts import keyed
from corpora.store.errors import CorpusError
from corpora.store.hub import HubSet, hub_rows

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Columns:
    """texts: name -> N texts, in the order in which the loss takes them. labels: N similarities or classes, or
    None."""

    texts: Mapping[str, Sequence[str]]
    labels: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.texts.values())))


@dataclass(frozen=True)
class RecipeCorpus:
    """sets: what arms are trained on, by name. guides: the encoders that a loss may ask, by theirs. fingerprint:
    names all rows, and the guides' weights."""

    sets: Mapping[str, Columns]
    guides: Mapping[str, str]
    fingerprint: str


def load(data: RecipeData, weights: Sequence[str]) -> RecipeCorpus:
    """weights: name those of each guide. CorpusError says what is missing or broken, and what mends it."""
    sets = {name: _columns_of(name, one, data.path, _stamp(one)) for name, one in data.datasets.items()}
    digest = hashlib.sha256(repr((*zip(data.guides, weights, strict=True),)).encode())
    for name, columns in sets.items():
        for part in (name, dict(columns.texts), columns.labels):
            digest.update(repr(part).encode())
    return RecipeCorpus(sets, data.guides, digest.hexdigest())


def _stamp(one: TrainingSet) -> tuple[int, int] | None:
    """What changes when a file does: rows that a process has read are not read for every run again."""
    file = Path(one.source).expanduser()
    return (file.stat().st_mtime_ns, file.stat().st_size) if file.is_file() else None


@lru_cache(maxsize=8)
def _columns_of(name: str, one: TrainingSet, path: str | None, stamp: object) -> Columns:
    """The rows of a training set. name: what the study calls it, for messages."""
    rows = [_checked(name, one, number, row) for number, row in enumerate(_rows(name, one, path), 1)]
    if one.sample is not None and one.sample < len(rows):
        rows = sorted(rows, key=lambda row: keyed(0, *row[0]))[: one.sample]
    if not rows:
        raise CorpusError(f"data.datasets.{name}: {one.source} holds no row")
    texts = {column: [row[0][place] for row in rows] for place, column in enumerate(one.texts)}
    labels = None if one.labelled is None else [row[1] for row in rows]
    return Columns(texts, labels)


def _checked(name: str, one: TrainingSet, number: int, row: Row) -> tuple[tuple[str, ...], Any]:
    where = f"data.datasets.{name}: {one.source}, row {number}:"
    texts = tuple(row[column] for column in one.texts)
    for column, text in zip(one.texts, texts, strict=True):
        if not isinstance(text, str) or not text.strip():
            raise CorpusError(f"{where} {column} = {text!r}\n  accepted: a text")
    if one.labelled is None:
        return texts, None
    try:
        label = float(row[one.labelled])
    except (TypeError, ValueError):
        label = float("nan")
    if label != label or abs(label) == float("inf"):
        raise CorpusError(f"{where} {one.labelled} = {row[one.labelled]!r}\n  accepted: a number")
    return texts, label / one.largest


def _rows(name: str, one: TrainingSet, path: str | None) -> Iterator[Row]:
    if one.source in GRADED:
        for pairs in sts.read(one.source, path=path).values():
            for a, b, gold in zip(pairs.a, pairs.b, pairs.gold.tolist(), strict=True):
                yield {"sentence1": a, "sentence2": b, "score": gold / sts.LARGEST}
    elif one.source in TRIPLETS:
        read = sentences.read(one.source, path=path)
        for anchor, positive, negative in zip(
            read.texts, read.entailed or (), read.contradicted or (), strict=True
        ):
            yield {"anchor": anchor, "positive": positive, "negative": negative}
    elif one.source.endswith(FILES):
        yield from _file(name, one)
    else:
        asked = HubSet(one.source, one.split, (*one.texts, *filter(None, [one.labelled])), one.config)
        rows, remarks = hub_rows(asked, path)
        if rows is None:
            looked = "".join(f"\n    {remark}" for remark in remarks)
            raise CorpusError(
                f"data.datasets.{name}: {one.source} not found; looked at{looked}\n  to get it: {asked.command}"
            )
        yield from rows


def _file(name: str, one: TrainingSet) -> Iterator[Row]:
    file = Path(one.source).expanduser()
    try:
        rows = _parsed(file)
    except (OSError, ValueError, csv.Error) as error:
        raise CorpusError(f"data.datasets.{name}: {file}: {str(error).splitlines()[0]}") from None
    asked = (*one.texts, *filter(None, [one.labelled]))
    for row in rows:
        if lacking := [column for column in asked if column not in row]:
            raise CorpusError(
                f"data.datasets.{name}: {file} lacks the column {lacking[0]!r}\n"
                f"  accepted: {', '.join(map(str, row))}"
            )
        yield row


def _parsed(file: Path) -> list[Row]:
    """The rows of a file by its suffix; CSV and TSV with a head of names."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(file).to_pylist()
    text = file.read_text(encoding="utf-8-sig")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if file.suffix == ".csv":
        return list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
