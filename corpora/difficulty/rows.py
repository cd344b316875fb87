"""The two splits of a sentence-pair task over one table of sentences."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from corpora.benchmarks.pairs import Pairs


@dataclass(frozen=True, eq=False)
class PairTask:
    """One task, capped. source: the files or data set of the rows, in words."""

    name: str
    graded: bool
    train: Pairs
    evaluation: Pairs
    evaluated_on: Literal["validation", "test", "selection"]
    source: str

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Every distinct sentence, in the order of the rows."""
        rows = (row for split in (self.train, self.evaluation) for row in zip(split.a, split.b, strict=True))
        return tuple(dict.fromkeys(chain.from_iterable(rows)))

    def fingerprint(self) -> dict[str, str]:
        """A hash of the capped rows, which is part of a run's identity."""
        return {
            "task": self.name,
            "train": self.train.sha256(),
            "evaluation": self.evaluation.sha256(),
            "evaluated_on": self.evaluated_on,
        }


def pair_sha256(a: str, b: str) -> str:
    """The key of an ordered pair of sentences: sha256 of its exact bytes."""
    return hashlib.sha256(f"{a}\t{b}".encode()).hexdigest()
