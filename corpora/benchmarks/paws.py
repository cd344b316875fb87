"""PAWS-Wiki, labelled (final): pairs with the same words, paraphrases or not. Source: Zhang et al., NAACL 2019.

pairs = read("test", path="data")      # data/paws/final/test.tsv; gold 1: a paraphrase
"""

from __future__ import annotations

from pathlib import Path

from corpora.benchmarks.pairs import Pairs
from corpora.store.errors import CorpusError
from corpora.store.hub import HubSet, hub_rows
from corpora.store.places import first_of, lines, not_found

FOLDERS = ("paws/final", "final", "paws")
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


def read(split: str, *, path: str | None) -> Pairs:
    """The pairs of train, dev or test, from data.path, $SEMRAY_DATA or the hub. CorpusError when it is nowhere."""
    file, remarks = first_of([f"{folder}/{split}.tsv" for folder in FOLDERS], path, Path.is_file)
    if file is not None:
        return paws_pairs(file)
    hub = HubSet(
        "google-research-datasets/paws",
        _SPLITS[split],
        ("id", "sentence1", "sentence2", "label"),
        "labeled_final",
    )
    rows, looked = hub_rows(hub, path)
    if rows is None:
        raise not_found(
            f"PAWS-Wiki ({split})",
            remarks + looked,
            holds=f"paws/final/{split}.tsv",
            source=f"https://github.com/google-research-datasets/paws, or {hub.command}",
        )
    return Pairs.of(
        (f"{split}:{row['id']}", row["sentence1"], row["sentence2"], float(row["label"])) for row in rows
    )


def paws_pairs(file: Path) -> Pairs:
    """Columns id, both sentences, label; with or without the header line. A quote is a letter."""
    rows = []
    for number, fields in lines(file):
        if len(fields) < 4:
            raise CorpusError(f"corpora: {file}, line {number}: {len(fields)} fields, expected 4")
        id_, a, b, label = fields[:4]
        if label == "label":
            continue
        if label not in ("0", "1"):
            raise CorpusError(f"corpora: {file}, line {number}: label {label!r}\n  accepted: 0, 1")
        rows.append((f"{file.stem}:{id_}", a, b, float(label)))
    if not rows:
        raise CorpusError(f"corpora: {file} holds no row below its header")
    return Pairs.of(rows)
