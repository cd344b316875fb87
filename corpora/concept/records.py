"""Row types of the concept family: training rows as columns, test rows as small frozen objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corpora.store.columns import Ragged, Texts

KINDS_OF = {  # rule -> the kinds of negatives that it makes
    "antonym": ("direct", "indirect", "fallback"),
    "negate": ("toggle", "aux", "lexical", "prefix"),
    "pos_random": ("random",),
    "pos_prefix": ("morph", "init3"),
    "type_swap": ("replace", "edit"),
}
RULES = tuple(KINDS_OF)
KINDS = tuple(kind for kinds in KINDS_OF.values() for kind in kinds)


@dataclass(frozen=True)
class PairRows:
    """N pairs of one view ("syn", "t2d", "d2d" or "c2l"), each a positive pair of one concept.

    left, right (N,) int32 index the corpus's `texts`. concept_ids: N rows of interned ids; two rows that share
    an id must not serve as each other's negatives: the row's synset, every synset of each term-like side, the
    surface of each term-like side and the wording of the definition side.
    """

    view: str
    left: np.ndarray
    right: np.ndarray
    concept_ids: Ragged

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class RuleNegatives:
    """Hard negatives of N t2d rows: `texts[i]` are text indices, `rule` and `kind` align with `texts.values`.

    rule (M,) uint8 indexes RULES, kind (M,) uint8 indexes KINDS; a row has at most one negative of each rule.
    """

    texts: Ragged
    rule: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class StressRow:
    """One rule applied to one test concept: its first term, its definition and the text that is wrong for it."""

    concept: str
    term: str
    definition: str
    rule: str
    kind: str
    negative: str


@dataclass(frozen=True)
class EvalSplit:
    """Held-out concepts as a retrieval problem.

    terms: Q terms, of distinct surfaces. definitions: P distinct masked definitions, the whole candidate pool.
    gold: per term the indices of every definition that is correct for it, judged by text.
    concept_of_definition: per definition the synsets that carry this text (usually one).
    stress: one row per (concept, rule that applies), for the first `stress_concepts` concepts.
    """

    name: str
    terms: tuple[str, ...]
    definitions: tuple[str, ...]
    gold: tuple[tuple[int, ...], ...]
    concept_of_definition: tuple[tuple[str, ...], ...]
    stress: tuple[StressRow, ...]


def reverse_gold(split: EvalSplit) -> tuple[tuple[int, ...], ...]:
    """Per definition the indices of every term that is correct for it: the d2t side of `split.gold`."""
    terms: list[list[int]] = [[] for _ in split.definitions]
    for term, definitions in enumerate(split.gold):
        for definition in definitions:
            terms[definition].append(term)
    return tuple(map(tuple, terms))


@dataclass(frozen=True)
class ConceptCorpus:
    """Everything the concept family trains and is tested on.

    texts: every distinct training text. syn, t2d, d2d: positive pairs, d2d None with one source. c2l: comments of
    an ontology with their labels, None without one. negatives: aligned with the t2d rows, made from train
    definitions only. splits: "dev", "id" and "hh". fingerprint: names sources, settings and builder. digests:
    sha256 of each table's content, equal whenever the content is.
    """

    texts: Texts
    syn: PairRows
    t2d: PairRows
    negatives: RuleNegatives
    splits: Mapping[str, EvalSplit]
    fingerprint: str
    digests: Mapping[str, str]
    d2d: PairRows | None = None
    c2l: PairRows | None = None
