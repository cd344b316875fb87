"""Chooses the training rows whose word is one vocabulary entry, and finds definitions shared with dev or test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corpora.defsent.records import DefsentCorpus


@dataclass(frozen=True, eq=False)
class Kept:
    """rows (M,): the training rows to train on, in the corpus's order. dropped: left out for their definition.

    repeated: by split, rows of dev and test whose definition a training row of this vocabulary has.
    """

    rows: np.ndarray
    dropped: int
    repeated: Mapping[str, int]


def kept_rows(corpus: DefsentCorpus, pieces: Mapping[str, np.ndarray]) -> Kept:
    """Training rows whose word is one piece, without those that share a definition with such a row of dev or test.

    pieces: by split, the piece of each row's word, -1 for none. Synonyms share a definition, so that of a held-out
    word would be trained on with its synonym. Such rows are left out for text_overlap "drop_from_train" only.
    """
    known = {name: np.flatnonzero(piece >= 0) for name, piece in pieces.items()}
    texts = {name: corpus.rows[name].definitions.take(rows) for name, rows in known.items()}
    trained = set(texts["train"])
    repeated = {name: sum(text in trained for text in texts[name]) for name in ("dev", "test")}
    asked = {text for name in ("dev", "test") for text in texts[name]}
    fresh = np.array([text not in asked for text in texts["train"]], bool)
    if corpus.text_overlap != "drop_from_train":
        fresh[:] = True
    return Kept(known["train"][fresh], int((~fresh).sum()), repeated)
