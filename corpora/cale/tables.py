"""Writes and reads a built SPCD: memory-mapped Arrow columns, and the names of their codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.cale.records import CATEGORIES, SPLITS, OccurrencePairs, Occurrences
from corpora.store.arrow_files import mapped_columns, write_columns
from corpora.store.columns import Texts

CODES = ("sentence", "start", "end", "lemma", "concept", "lexname", "pos", "split")
NAMES = ("lemmas", "concepts", "lexnames")
LICENCE = (
    "Made from SemCor and WordNet, copyright Princeton University; the WordNet licence applies to every copy."
)


@dataclass(frozen=True, eq=False)
class Spcd:
    """Occurrences, the pairs of each split, the Wu-Palmer similarity of the test pairs (N_test,), and digests.

    rules: the settings that it was built with, for readers of the folder.
    """

    occurrences: Occurrences
    pairs: Mapping[str, OccurrencePairs]
    wu_palmer: np.ndarray
    digests: Mapping[str, str]
    rules: Mapping[str, Any]


def write_spcd(folder: Path, built: Spcd) -> None:
    """Arrow files (sentences, occurrences, each split, wu_palmer), names.json and about.json under `folder`."""
    occurrences = built.occurrences
    sentences = pa.array(list(occurrences.sentences), pa.large_string())
    write_columns(folder / "sentences.arrow", {"text": sentences})
    columns = {name: pa.array(getattr(occurrences, name)) for name in CODES}
    write_columns(folder / "occurrences.arrow", {"id": occurrences.ids, **columns})
    for split, pairs in built.pairs.items():
        columns = {name: pa.array(getattr(pairs, name)) for name in ("anchor", "partner", "category")}
        write_columns(folder / f"{split}.arrow", columns)
    write_columns(folder / "wu_palmer.arrow", {"similarity": pa.array(built.wu_palmer)})
    names = {name: getattr(occurrences, name) for name in NAMES}
    (folder / "names.json").write_text(json.dumps(names, indent=0))
    about = {
        "rules": dict(built.rules),
        "counts": _counts(built),
        "digests": dict(built.digests),
        "licence": LICENCE,
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1))


def read_spcd(folder: Path) -> Spcd:
    """Read the folder; the arrays are views of the mapped files."""
    names, about = (json.loads((folder / name).read_text()) for name in ("names.json", "about.json"))
    columns = mapped_columns(folder / "occurrences.arrow")
    parts: dict[str, Any] = {name: columns[name].to_numpy() for name in CODES}
    parts |= {name: tuple(names[name]) for name in NAMES}
    occurrences = Occurrences(
        ids=columns["id"],
        sentences=Texts(mapped_columns(folder / "sentences.arrow")["text"]),
        **parts,
    )
    pairs = {}
    for split in SPLITS:
        read = mapped_columns(folder / f"{split}.arrow")
        pairs[split] = OccurrencePairs(*(read[name].to_numpy() for name in ("anchor", "partner", "category")))
    similarity = mapped_columns(folder / "wu_palmer.arrow")["similarity"].to_numpy()
    return Spcd(occurrences, pairs, similarity, about["digests"], about["rules"])


def _counts(built: Spcd) -> dict[str, dict[str, int]]:
    """The number of anchors and pairs of each split, in all and by category."""
    return {
        split: {"anchors": len(np.unique(pairs.anchor)), "pairs": len(pairs)}
        | dict(zip(CATEGORIES, np.bincount(pairs.category, minlength=len(CATEGORIES)).tolist(), strict=True))
        for split, pairs in built.pairs.items()
    }
