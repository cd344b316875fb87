"""The probability that a token is masked, by the importance of its part of speech.

Source: SAN, section 3.1 and table 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from corpora.san.recipe import Law
from corpora.store.errors import CorpusError
from corpora.store.places import named_path

TABLE = Path(__file__).with_name("importance.yaml")
POS = (
    *("NOUN", "VERB", "ADJ", "PROPN", "ADV", "PRON", "CCONJ", "DET", "ADP", "CONJ", "SCONJ", "AUX", "NUM", "PART"),
    *("INTJ", "PUNCT", "SYM", "X", "SPECIAL"),
)
CODE = {name: code for code, name in enumerate(POS)}
CONTENT = ("NOUN", "VERB", "ADJ", "ADV", "PROPN")
SPECIAL = CODE["SPECIAL"]


def read_scores(path: str | Path | None = None) -> dict[str, float]:
    """The score of every part of speech; None for the paper's table. CorpusError when one is missing or wrong."""
    file = named_path(path) if path else TABLE
    try:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CorpusError(f"corpora: importance table {file} cannot be read: {error}") from error
    names = set(given) if isinstance(given, dict) else set()
    if names != set(POS):
        wrong = [f"lacks {name}" for name in POS if name not in names]
        wrong += [f"has {name}" for name in sorted(map(str, names - set(POS)))]
        accepted = f"a score for each of {', '.join(POS)}"
        raise CorpusError(f"corpora: importance table {file} {wrong[0]}\n  accepted: {accepted}")
    for name, score in given.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score < float("inf"):
            raise CorpusError(f"corpora: importance table {file}: {name} = {score!r}\n  accepted: a number from 0")
    return {name: float(given[name]) for name in POS}


@dataclass(frozen=True)
class Masking:
    """P(mask) of a token from its part of speech.

        importance     min(1, score / scale)
        uniform        the sentence's mean of the importance law: as many masks are expected, at any word
        content_only   the importance law on nouns, verbs, adjectives, adverbs and names, 0 elsewhere

    The two others are controls: does it matter which words are masked?
    """

    law: Law
    scale: float
    scores: Mapping[str, float]

    def probabilities(self, tags: np.ndarray) -> np.ndarray:
        """Codes of POS, (..., T) -> (..., T) float64. SPECIAL, which padding is too, is never masked."""
        each = self._table()[tags]
        if self.law == "uniform":
            maskable = tags != SPECIAL
            mean = each.sum(-1, keepdims=True) / np.maximum(maskable.sum(-1, keepdims=True), 1)
            return np.where(maskable, mean, 0.0)
        return each

    def _table(self) -> np.ndarray:
        scores = np.array([self.scores[name] for name in POS])
        if self.law == "content_only":
            scores = np.where(np.isin(POS, CONTENT), scores, 0.0)
        return np.where(np.array(POS) == "SPECIAL", 0.0, np.minimum(1.0, scores / self.scale))
