"""Row types of the defsent family: words with their definitions, and pairs of sentences.

rows = corpus.rows["train"]
rows.words[0], rows.definitions[0]          # "cup", "a small open container usually used for drinking"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corpora.store.columns import Texts

SPLITS = ("train", "dev", "test")
LABELS = ("entailment", "neutral", "contradiction")


class Definition(NamedTuple):
    """A question to an encoder: how well does this definition lead to this word?"""

    definition: str
    word: str


class Sourced(NamedTuple):
    """A row as a dictionary gives it; pos is n, v, a, r, or empty."""

    source: str
    word: str
    definition: str
    pos: str


Split = dict[str, list[tuple[str, str, Sourced]]]  # split -> (row id, split key, row)


@dataclass(frozen=True, eq=False)
class DefinitionRows:
    """N rows of one split, the definitions of a word side by side, the words in the order of the split.

    ids: sha256 of source, word and definition, 16 digits. keys: what the split counts as one word.
    """

    ids: Texts
    words: Texts
    definitions: Texts
    keys: Texts

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: Sequence[int] | np.ndarray) -> DefinitionRows:
        """The rows at these places, in this order. (N,) integers -> N rows."""
        at = np.asarray(rows, np.int64)
        columns = (self.ids, self.words, self.definitions, self.keys)
        return DefinitionRows(*(Texts.of(column.take(at)) for column in columns))


@dataclass(frozen=True, eq=False)
class Inferences:
    """N premises with hypotheses; label (N,) uint8 indexes LABELS. source: where they are from."""

    source: str
    premises: Texts
    hypotheses: Texts
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions to an encoder: rows of dev or test. words_of: every word of the corpus with that definition."""

    rows: DefinitionRows
    words_of: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class DefsentCorpus:
    """Training rows and held-out rows of the defsent family. A trainer selects the words of its vocabulary.

    rows: by split. inferences: None where the study asks for none. plain_texts: further text to fit a head on.
    text_overlap: the rule for definitions that are both in training and in evaluation. fingerprint: a hash of
    sources, settings and builder. digests: sha256 of each table's content.
    """

    rows: Mapping[str, DefinitionRows]
    inferences: Inferences | None
    plain_texts: tuple[str, ...]
    text_overlap: str
    fingerprint: str
    digests: Mapping[str, str]
