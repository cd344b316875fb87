"""A word in its sentence: what the `cale` family encodes, pairs and evaluates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Occurrence:
    """text[start:end] is the target as it stands in the sentence; lemma is the word it is a form of."""

    text: str
    start: int
    end: int
    lemma: str

    @property
    def target(self) -> str:
        return self.text[self.start : self.end]
