"""WiC-TSV: is a word in its sentence meant as this definition says? English; the test part has no labels.

splits = read(path="data")      # train and dev of data/wic_tsv/Training/train_examples.txt and so on
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.benchmarks.records import WicPair
from corpora.benchmarks.wic import is_same, token_of
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError
from corpora.store.places import found, lines

SPLITS = {"train": "Training", "dev": "Development"}  # Breit et al. keep the labels of the third


def read(*, path: str | None) -> dict[str, tuple[WicPair, ...]]:
    """Pairs of the word in its sentence and the word before the definition; ids are `split:line`.

    CorpusError when a file is absent or odd.
    """
    folder = found(
        "WiC-TSV",
        ("wic_tsv", "wic-tsv", "WiC-TSV/data/en"),
        path=path,
        holds="wic_tsv/Training/train_examples.txt, train_definitions.txt, train_labels.txt, and Development",
        source="https://github.com/semantic-web-company/wic-tsv, folder data/en",
    )
    return {split: tuple(_pairs(folder / name, split)) for split, name in SPLITS.items()}


def _pairs(folder: Path, split: str) -> Iterator[WicPair]:
    parts = {part: folder / f"{split}_{part}.txt" for part in ("examples", "definitions", "labels")}
    rows = {part: list(lines(file)) for part, file in parts.items()}
    if len({len(listed) for listed in rows.values()}) > 1:
        counts = ", ".join(f"{parts[part].name} {len(listed)}" for part, listed in rows.items())
        raise CorpusError(f"corpora: {folder}: rows: {counts}\n  accepted: as many of each")
    for (number, fields), (_, definition), (_, label) in zip(*rows.values(), strict=True):
        at = f"corpora: {parts['examples']}, line {number}"
        if len(fields) != 3 or not fields[1].isdecimal():
            raise CorpusError(f"{at}: {fields!r}\n  accepted: a word, its place and an example, tab-separated")
        same = is_same(label, f"corpora: {parts['labels']}, line {number}")
        word, place, example = fields
        in_sentence = token_of(example, int(place), word, at)
        defined = Occurrence(f"{word} : {definition[0]}", 0, len(word), word)
        yield WicPair(f"{split}:{number}", in_sentence, defined, same)
