"""Reranking sets: queries, each with candidates that answer it and candidates that do not.

    read("AskUbuntuDupQuestions", path="data")      # (Reranked("how to mount a disk", ("mount a drive",),
    (...)), ...)

Sources: Lei et al. 2016 (AskUbuntu), Cohan et al. 2020 (SciDocs), Liu et al. 2018 (StackOverflow), in the layout
that MTEB published: a line a query, {"query": text, "positive": [texts], "negative": [texts]}.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import NamedTuple

from corpora.store.errors import CorpusError
from corpora.store.places import found

NAMES = ("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions")


class Reranked(NamedTuple):
    """One query; both lists hold at least one text."""

    query: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


def read(name: str, *, path: str | None) -> tuple[Reranked, ...]:
    """The queries that have candidates of both kinds. CorpusError when the set is not at hand, or a line odd."""
    files = (f"reranking/{name}.jsonl", f"reranking/{name}.jsonl.gz")
    place = found(
        name,
        files,
        path=path,
        holds=f"{files[0]}, a line a query: {{query, positive, negative}}",
        source=f"https://huggingface.co/datasets/mteb/{name.lower()}-reranking, file test.jsonl.gz",
    )
    rows = [_row(place, number, line) for number, line in enumerate(_lines(place), 1) if line.strip()]
    if not rows:
        raise CorpusError(f"corpora: {place} holds no row")
    ranked = tuple(row for row in rows if row.positive and row.negative)
    if not ranked:
        raise CorpusError(f"corpora: {place} holds no query with candidates of both kinds")
    return ranked


def _lines(place: Path) -> list[str]:
    try:
        content = gzip.decompress(place.read_bytes()) if place.suffix == ".gz" else place.read_bytes()
        return content.decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise CorpusError(f"corpora: {place} cannot be read: {error}") from error


def _row(place: Path, number: int, line: str) -> Reranked:
    try:
        fields = json.loads(line)
        lists = fields["positive"], fields["negative"]
        row = Reranked(fields["query"], *map(tuple, lists))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorpusError(f"corpora: {place}, line {number}: no query with its candidates: {error!r}") from error
    if not all(isinstance(listed, list) for listed in lists):
        raise CorpusError(f"corpora: {place}, line {number}: candidates that are no list\n  accepted: [text, ...]")
    if not all(isinstance(text, str) for text in (row.query, *row.positive, *row.negative)):
        raise CorpusError(f"corpora: {place}, line {number}: a query or a candidate is no text")
    return row
