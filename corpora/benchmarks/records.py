"""Row types of the evaluation sets."""

from __future__ import annotations

from dataclasses import dataclass

from corpora.sources.occurrences import Occurrence


@dataclass(frozen=True)
class ChangeTarget:
    """A word whose use in two periods is compared; change is the graded gold score in [0, 1]."""

    lemma: str
    first: tuple[Occurrence, ...]
    second: tuple[Occurrence, ...]
    change: float


@dataclass(frozen=True)
class SimilarityPair:
    """Two words that occur together in two contexts; each context holds (word 1, word 2). Gold sims in [0, 10]."""

    word1: str
    word2: str
    context1: tuple[Occurrence, Occurrence]
    context2: tuple[Occurrence, Occurrence]
    sim1: float
    sim2: float


@dataclass(frozen=True)
class WicPair:
    """One word in two sentences; same: it carries the same sense in both."""

    id: str
    first: Occurrence
    second: Occurrence
    same: bool
