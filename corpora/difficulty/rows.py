"""The two splits of a sentence-pair task over one table of sentences."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from corpora.benchmarks.pairs import Pairs


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
