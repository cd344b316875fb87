"""Row types that flow out of the corpora: columns for training, small frozen objects for evaluation.

Training rows are columns of integers over one array of distinct texts, so that a trainer tokenises every
text once and 400,000 rows take a few tens of megabytes; the arrays are read-only views of the cached files.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RULES = ("antonym", "negate", "pos_random", "pos_prefix", "type_swap")
KINDS = (
    *("direct", "indirect", "fallback"),  # antonym
    *("toggle", "aux", "lexical", "prefix"),  # negate
    "random",  # pos_random
    *("morph", "init3"),  # pos_prefix
    *("replace", "edit"),  # type_swap
)


class Texts(Sequence[str]):
    """Distinct texts over an Arrow string array: `texts[i]`, `texts[a:b]`, `texts.take(indices)`."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._array[index].to_pylist()
        return self._array[int(index)].as_py()

    def __iter__(self) -> Iterator[str]:
        return iter(self._array.to_pylist())

    def take(self, indices: np.ndarray) -> list[str]:
        """The texts at these places, in this order. (N,) integers -> N strings."""
        return self._array.take(pa.array(indices)).to_pylist()

    def filled(self) -> np.ndarray:
        """(N,) bool: which texts are more than nothing."""
        return pc.not_equal(pc.binary_length(self._array), 0).to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class Ragged:
    """N rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`.

    values (M,) int32, offsets (N + 1,) int64.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Ragged:
        """Pack rows, read once, in their order."""
        values, offsets = array("i"), array("q", [0])
        for row in rows:
            values.extend(row)
            offsets.append(len(values))
        return Ragged(np.array(values, np.int32), np.array(offsets, np.int64))


@dataclass(frozen=True)
class PairRows:
    """N pairs of one view ("syn", "t2d" or "d2d"), each a positive pair of one concept.

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

    terms: Q distinct normalised terms. definitions: P distinct masked definitions, the whole candidate pool.
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

    texts: every distinct training text. syn, t2d, d2d: positive pairs, d2d None with one source. negatives:
    aligned with the t2d rows, made from train definitions only. splits: "dev", "id" and "hh". fingerprint: names
    sources, settings and builder. digests: sha256 of each table's content, equal whenever the content is.
    """

    texts: Texts
    syn: PairRows
    t2d: PairRows
    negatives: RuleNegatives
    splits: Mapping[str, EvalSplit]
    fingerprint: str
    digests: Mapping[str, str]
    d2d: PairRows | None = None
