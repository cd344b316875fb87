"""Negation: sentences beside their negation, and paraphrases that an antonym under a negation makes.

    sets = negated_pairs(path="data")        # {"nan_nli": Pairs, ...}: a sentence and its negation; gold 0
    items = semantoneg(path="data")          # an input, three candidates, the place of its paraphrase

Sources: CANNOT, Anschuetz et al. 2023, with what it was built from; SemAntoNeg, Vahtola et al. 2022.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corpora.benchmarks.pairs import Pairs
from corpora.store.errors import CorpusError
from corpora.store.places import found, quoted_rows, text_of

FOLDERS = ("negation_pairs", "cannot", "datasets")
SOURCE = "https://github.com/dmlls/cannot-dataset"
FILES = {
    "nan_nli": ("nan_nli.tsv",),
    "glue_diagnostic": ("glue_diagnostic.tsv",),
    "reviews": ("sentiment_labelled_sentences.tsv",),
    "wikifactcheck": tuple(f"wikifactcheck_english_{part}.tsv" for part in range(5)),
}  # name of the pairs in figures -> their files


@dataclass(frozen=True)
class Contrast:
    """candidates[paraphrase] says the same as input; the others contradict it."""

    id: str
    input: str
    candidates: tuple[str, ...]
    paraphrase: int


def negated_pairs(*, path: str | None) -> Mapping[str, Pairs]:
    """Each set's sentences (a) and their negations (b), gold 0. CorpusError when a file is absent or odd."""
    return {
        name: Pairs.of(row for file in files for row in _negated(_file(name, file, path)))
        for name, files in FILES.items()
    }


def semantoneg(*, path: str | None) -> tuple[Contrast, ...]:
    """SemAntoNeg in file order, one JSON object a line. CorpusError when the file is absent or odd."""
    file = _file("SemAntoNeg", "SemAntoNeg_v1.0.json", path)
    items = tuple(
        _contrast(line, f"corpora: {file}, line {number}")
        for number, line in enumerate(text_of(file).split("\n"), 1)
        if line.strip()
    )
    if not items:
        raise CorpusError(f"corpora: {file} holds no row")
    return items


def _file(what: str, name: str, path: str | None) -> Path:
    return found(
        what,
        [f"{folder}/{name}" for folder in FOLDERS],
        path=path,
        holds=f"{FOLDERS[0]}/{name}",
        source=SOURCE,
    )


def _negated(file: Path) -> list[tuple[str, str, str, float]]:
    """Columns sentence and negated, tab-separated and quoted where needed."""
    rows: list[tuple[str, str, str, float]] = []
    for number, row in quoted_rows(file, ("sentence", "negated"), delimiter="\t"):
        if not row["sentence"] or not row["negated"]:
            raise CorpusError(f"corpora: {file}, line {number}: a sentence or its negation is empty")
        rows.append((f"{file.stem}:{len(rows) + 1}", row["sentence"], row["negated"], 0.0))
    return rows


def _contrast(line: str, at: str) -> Contrast:
    try:
        item = json.loads(line)
        label, candidates = int(item["label"]), tuple(map(str, item["sentences"]))
        made = Contrast(str(item["idx"]), str(item["input"]), candidates, label)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorpusError(f"{at}: {error!r}\n  accepted: an object with idx, label, input and sentences") from None
    if not 0 <= label < len(candidates):
        raise CorpusError(f"{at}: label {label} of {len(candidates)} sentences")
    return made
