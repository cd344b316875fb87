"""Row types of the CALE corpus: word occurrences with their concepts, and pairs of them.

    corpus.occurrences[corpus.pairs["test"].anchor[0]]      # Occurrence("The Fulton County ...", 31, 35, "say")

Occurrences and pairs are columns over Arrow arrays, so that several workers map one file instead of each holding
a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import pyarrow as pa

from corpora.sources.occurrences import Occurrence
from corpora.store.columns import Texts

CATEGORIES = ("SC/SL", "SC/DL", "DC/SL", "DC/DL")  # same or different concept / same or different lemma
SPLITS = ("train", "val", "test")
POS = ("n", "v", "a")


class Tagged(NamedTuple):
    """An occurrence and its annotation. `id` names file, sentence and word: `br-a01:1:2`."""

    id: str
    occurrence: Occurrence
    concept: str
    pos: str = "n"
    lexname: str = "noun.Tops"
    split: str = "test"


@dataclass(frozen=True, eq=False)
class Occurrences(Sequence[Occurrence]):
    """N occurrences in the order of their ids: `occurrences[i]`, `occurrences.take(indices)`.

    ids: N strings. sentences: the distinct sentences; sentence (N,) int32 indexes them, start and end (N,) int32
    are the target's place in its sentence. lemma, concept, lexname (N,) int32 index the sorted names in lemmas,
    concepts, lexnames; pos and split (N,) uint8 index POS and SPLITS.
    """

    ids: pa.Array
    sentences: Texts
    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    lemma: np.ndarray
    concept: np.ndarray
    lexname: np.ndarray
    pos: np.ndarray
    split: np.ndarray
    lemmas: tuple[str, ...]
    concepts: tuple[str, ...]
    lexnames: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sentence)

    @overload
    def __getitem__(self, index: int) -> Occurrence: ...
    @overload
    def __getitem__(self, index: slice) -> list[Occurrence]: ...
    def __getitem__(self, index: int | slice) -> Occurrence | list[Occurrence]:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        return self.take(np.array([index]))[0]

    def __iter__(self) -> Iterator[Occurrence]:
        return iter(self.take(np.arange(len(self))))

    def take(self, indices: Sequence[int] | np.ndarray) -> list[Occurrence]:
        """The occurrences at these places, in this order. (N,) integers -> N occurrences."""
        at = np.asarray(indices, np.int64)
        texts = self.sentences.take(self.sentence[at])
        places = zip(self.start[at].tolist(), self.end[at].tolist(), self.lemma[at].tolist(), strict=True)
        return [
            Occurrence(text, start, end, self.lemmas[lemma])
            for text, (start, end, lemma) in zip(texts, places, strict=True)
        ]

    @staticmethod
    def of(rows: Iterable[Tagged]) -> Occurrences:
        """Columns of these rows, in memory, sorted by id."""
        kept = sorted(rows)
        texts = {row.occurrence.text: None for row in kept}
        places = {text: at for at, text in enumerate(texts)}
        lemmas, lemma = _coded([row.occurrence.lemma for row in kept])
        concepts, concept = _coded([row.concept for row in kept])
        lexnames, lexname = _coded([row.lexname for row in kept])
        return Occurrences(
            ids=pa.array([row.id for row in kept], pa.large_string()),
            sentences=Texts.of(texts),
            sentence=np.array([places[row.occurrence.text] for row in kept], np.int32),
            start=np.array([row.occurrence.start for row in kept], np.int32),
            end=np.array([row.occurrence.end for row in kept], np.int32),
            lemma=lemma,
            concept=concept,
            lexname=lexname,
            pos=np.array([POS.index(row.pos) for row in kept], np.uint8),
            split=np.array([SPLITS.index(row.split) for row in kept], np.uint8),
            lemmas=lemmas,
            concepts=concepts,
            lexnames=lexnames,
        )


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """The sorted distinct names and, per row, the place of its name among them."""
    table = tuple(sorted(set(names)))
    places = {name: at for at, name in enumerate(table)}
    return table, np.array([places[name] for name in names], np.int32)


@dataclass(frozen=True, eq=False)
class OccurrencePairs:
    """N ordered pairs of one split, sorted by anchor, category and partner.

    anchor, partner (N,) int32 index the corpus's occurrences; category (N,) uint8 indexes CATEGORIES.
    """

    anchor: np.ndarray
    partner: np.ndarray
    category: np.ndarray

    def __len__(self) -> int:
        return len(self.anchor)

    @property
    def label(self) -> np.ndarray:
        """(N,) bool: both occurrences carry the same concept."""
        return self.category < 2

    @property
    def same_lemma(self) -> np.ndarray:
        """(N,) bool: both occurrences are of one lemma."""
        return self.category % 2 == 0

    def take(self, rows: Sequence[int] | np.ndarray) -> OccurrencePairs:
        return OccurrencePairs(self.anchor[rows], self.partner[rows], self.category[rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class CaleCorpus:
    """Everything the cale family trains and is tested on.

    pairs: by split. wu_palmer (N_test,) float64: similarity of the concepts of each test pair. threshold (M,)
    int64: rows of the train pairs that, with all val pairs, choose the decision threshold. unseen (K,) int64: rows
    of the test pairs of which neither sentence trains, with any target. fingerprint: names what is trained on:
    sources, settings and builder. digests: of occurrences and pairs as built, over their sorted lines.
    """

    occurrences: Occurrences
    pairs: Mapping[str, OccurrencePairs]
    wu_palmer: np.ndarray
    threshold: np.ndarray
    unseen: np.ndarray
    fingerprint: str
    digests: Mapping[str, str]
