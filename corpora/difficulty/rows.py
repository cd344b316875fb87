"""Rows of a sentence-pair task: one split, and the two splits of a task over one table of sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np


@dataclass(frozen=True, eq=False)
class Pairs:
    """N rows of one split. ids are unique within the split; gold (N,) float64 in [0, 1]."""

    ids: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    gold: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int]) -> Pairs:
        return Pairs(
            tuple(self.ids[row] for row in rows),
            tuple(self.a[row] for row in rows),
            tuple(self.b[row] for row in rows),
            self.gold[list(rows)],
        )

    def sha256(self) -> str:
        """Hash of ids, both texts and gold, in order: the row-id hash that is logged with every result."""
        digest = hashlib.sha256()
        for row in zip(self.ids, self.a, self.b, self.gold.tolist(), strict=True):
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def groups(self) -> tuple[str, ...]:
        """Per row the group of rows it is tied to by shared sentences, named after its first row."""
        parent: dict[str, str] = {}

        def root(sentence: str) -> str:
            while parent.setdefault(sentence, sentence) != sentence:
                parent[sentence] = parent[parent[sentence]]
                sentence = parent[sentence]
            return sentence

        for a, b in zip(self.a, self.b, strict=True):
            parent[root(b)] = root(a)
        first: dict[str, str] = {}
        return tuple(first.setdefault(root(a), row) for a, row in zip(self.a, self.ids, strict=True))

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Retrieval pool: rows where a side-b text appears first (K,), and each row's own place in it (N,)."""
        place: dict[str, int] = {}
        rows: list[int] = []
        for row, text in enumerate(self.b):
            if text not in place:
                place[text] = len(rows)
                rows.append(row)
        return np.array(rows), np.array([place[text] for text in self.b])


@dataclass(frozen=True, eq=False)
class PairTask:
    """One task, capped. source says in words which files or data set the rows are from."""

    name: str
    graded: bool
    train: Pairs
    evaluation: Pairs
    evaluated_on: Literal["validation", "test", "selection"]
    source: str
    sentences: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        seen: dict[str, None] = {}
        for split in (self.train, self.evaluation):
            for a, b in zip(split.a, split.b, strict=True):
                seen[a] = seen[b] = None
        object.__setattr__(self, "sentences", tuple(seen))

    def fingerprint(self) -> dict[str, str]:
        """What identifies the capped rows: they change the result, so they belong to a run's identity."""
        return {
            "task": self.name,
            "train": self.train.sha256(),
            "evaluation": self.evaluation.sha256(),
            "evaluated_on": self.evaluated_on,
        }


def pair_sha256(a: str, b: str) -> str:
    """The name of an ordered pair of sentences, from its exact bytes."""
    return hashlib.sha256(f"{a}\t{b}".encode()).hexdigest()
