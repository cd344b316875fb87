"""What may stand in the columns of a step: sentences, their negations, their aligned negatives.

A column gives a text for every row of the corpus; where a row has none, its own sentence stands in and is masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from corpora.san.records import NONE

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus
    from corpora.store.columns import Texts
    from trainers.san.settings import Settings


@dataclass(frozen=True, eq=False)
class Column:
    """take(rows): the texts of these rows. missing (N,) bool: rows of which the text only stands in."""

    take: Callable[[np.ndarray], list[str]]
    missing: np.ndarray

    def __len__(self) -> int:
        return len(self.missing)


def whole(texts: Texts) -> Column:
    """A text in every row."""
    return Column(texts.take, np.zeros(len(texts), bool))


def negations(corpus: SanCorpus) -> Column:
    """SNCSE's soft negatives; where negation changed nothing, "Not" goes before the sentence, as a last resort."""

    def take(rows: np.ndarray) -> list[str]:
        both = zip(corpus.soft.take(rows), corpus.sentences.take(rows), strict=True)
        return [soft or f"Not {sentence}" for soft, sentence in both]

    return Column(take, np.zeros(len(corpus), bool))


def negatives(settings: Settings, corpus: SanCorpus) -> Column:
    """What an arm with `san` pushes its anchors away from: aligned negatives, or what its control has instead."""
    if settings.column == "random":
        return whole(corpus.sentences)
    if settings.column == "soft":
        return negations(corpus)
    chosen = corpus.negatives(settings.negatives, rule=settings.postprocess)

    def take(rows: np.ndarray) -> list[str]:
        both = zip(chosen.take(rows), corpus.sentences.take(rows), strict=True)
        return [negative or sentence for negative, sentence in both]

    return Column(take, chosen.source == NONE)
