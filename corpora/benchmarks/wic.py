"""WiC: does a word carry the same sense in two sentences?

splits = read(path="data")      # data/wic/train/train.data.txt and train.gold.txt, also dev and test
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.benchmarks.records import WicPair
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError
from corpora.store.places import found, lines

SPLITS = ("train", "dev", "test")


def read(*, path: str | None) -> dict[str, tuple[WicPair, ...]]:
    """The pairs of train, dev and test, in file order; ids are `split:line`. CorpusError when a file is absent."""
    folder = found(
        "WiC",
        ("wic", "WiC", "WiC_dataset"),
        path=path,
        holds="wic/<split>/<split>.data.txt and .gold.txt",
        source="https://pilehvar.github.io/wic",
    )
    return {split: tuple(_pairs(folder / split, split)) for split in SPLITS}


def _pairs(folder: Path, split: str) -> Iterator[WicPair]:
    data, gold = folder / f"{split}.data.txt", folder / f"{split}.gold.txt"
    rows, labels = list(lines(data)), list(lines(gold))
    if len(rows) != len(labels):
        raise CorpusError(
            f"corpora: {data} has {len(rows)} rows and {gold.name} {len(labels)}\n  accepted: as many"
        )
    for (number, fields), (_, label) in zip(rows, labels, strict=True):
        at = f"corpora: {data}, line {number}"
        if len(fields) != 5:
            raise CorpusError(
                f"{at}: {len(fields)} fields, expected 5 (word, part of speech, places, two examples)"
            )
        same = is_same(label, f"corpora: {gold}, line {number}")
        lemma, _, places, *examples = fields
        first, second = (
            token_of(example, place, lemma, at)
            for example, place in zip(examples, _places(places, at), strict=True)
        )
        yield WicPair(f"{split}:{number}", first, second, same)


def _places(written: str, at: str) -> tuple[int, int]:
    first, _, second = written.partition("-")
    if not (first.isdecimal() and second.isdecimal()):
        raise CorpusError(f"{at}: places {written!r}\n  accepted: two token numbers, as 2-5")
    return int(first), int(second)


def is_same(label: list[str], at: str) -> bool:
    """Whether a line of labels says T. CorpusError where it says neither T nor F."""
    if label[0] not in ("T", "F"):
        raise CorpusError(f"{at}: {label[0]!r}\n  accepted: T, F")
    return label[0] == "T"


def token_of(example: str, place: int, lemma: str, at: str) -> Occurrence:
    """A token of an example, whose tokens stand apart by one space. CorpusError where it has no such token."""
    tokens = example.split(" ")
    if place >= len(tokens):
        raise CorpusError(f"{at}: token {place} of an example of {len(tokens)} tokens")
    start = sum(map(len, tokens[:place])) + place
    return Occurrence(example, start, start + len(tokens[place]), lemma)
