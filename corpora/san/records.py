"""Row types of the SAN corpus: sentences, one aligned negative each from every declared set, and soft negatives.

    negatives = corpus.negatives("san", rule="semray")
    texts = negatives.take(rows)                        # "" where the row contributes no negative
    usable = negatives.source[rows] != NONE             # (N,) bool

All texts are columns over mapped Arrow arrays, so that several workers share one copy of a million rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from corpora.store.columns import Texts

Rule = Literal["off", "authors", "semray"]

# Bits of a row's flags. The seven of the rule `semray`, then the one test of the rule `authors`.
FLAGS = ("empty", "punct", "short", "identical", "detached", "repeat", "unk", "authors")
BIT = {name: 1 << place for place, name in enumerate(FLAGS)}
FAILS: Mapping[Rule, int] = {"off": 0, "authors": BIT["authors"], "semray": BIT["authors"] - 1}

# Where the text of a row's negative comes from.
SOURCES = ("san", "soft", "earlier", "none")
SAN, SOFT, EARLIER, NONE = range(len(SOURCES))


@dataclass(frozen=True, eq=False)
class AlignedSet:
    """The aligned negatives of N sentences that one generator made under one masking law.

    last: texts of the last iteration. earlier: texts of the nearest earlier iteration without a flag of `semray`,
    "" if there is none. flags (N,) uint16: bits of FLAGS for `last`. kept (N,) float32: share of the sentence's
    words in `last`. masked: (N,) int16 for each iteration, the number of masked tokens. generator: its name in
    words; a stand-in says that it is one. id: a hash of everything that can change a row.
    """

    last: Texts
    earlier: Texts
    flags: np.ndarray
    kept: np.ndarray
    masked: tuple[np.ndarray, ...]
    generator: str
    id: str

    def __len__(self) -> int:
        return len(self.flags)


@dataclass(frozen=True, eq=False)
class Negatives:
    """The negative text of each of N rows after the quality rule; "" for a row that has none.

    source (N,) uint8 indexes SOURCES. A row with source NONE stays in the batch as an anchor, and its negative
    must be masked for every anchor.
    """

    source: np.ndarray
    columns: Mapping[int, Texts]

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        """The negatives of these rows, in this order. (N,) integers -> N strings."""
        at = np.asarray(rows, np.int64)
        source = self.source[at]
        texts = np.full(len(at), "", dtype=object)
        for origin, column in self.columns.items():
            chosen = source == origin
            texts[chosen] = column.take(at[chosen])
        return texts.tolist()


@dataclass(frozen=True, kw_only=True, eq=False)
class SanCorpus:
    """Everything the san family trains on: N rows, in the order of the sentence corpus.

    sentences: the anchors. soft: the sentence negated (SNCSE's soft negative), "" where negation changes nothing.
    negator: who negated, in words. sets: the aligned negatives by the name that an arm's `negatives:` gives.
    entailed, contradicted: of each anchor, for the supervised host; None in a corpus without labels.
    teachers: frozen encoders by the name that an arm's `teachers:` gives, as BACKBONE@READOUT.
    fingerprint: names sources, settings and builder.
    """

    sentences: Texts
    soft: Texts
    negator: str
    sets: Mapping[str, AlignedSet]
    entailed: Texts | None = None
    contradicted: Texts | None = None
    teachers: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str

    def __len__(self) -> int:
        return len(self.sentences)

    def negatives(self, name: str, *, rule: Rule) -> Negatives:
        """The negatives of a set under a quality rule.

        The soft negative replaces one that fails. If the row has no soft negative, `semray` takes the nearest
        earlier iteration that passes, if any; with `authors` such a row has no negative.
        """
        chosen = self.sets[name]
        fails = (chosen.flags & FAILS[rule]) > 0  # (N,)
        source = np.where(fails, np.where(self.soft.filled(), SOFT, NONE), SAN)
        if rule == "semray":
            source = np.where((source == NONE) & chosen.earlier.filled(), EARLIER, source)
        source = np.where((source == SAN) & ~chosen.last.filled(), NONE, source)  # a blank text is no negative
        return Negatives(source.astype(np.uint8), {SAN: chosen.last, SOFT: self.soft, EARLIER: chosen.earlier})
