"""A word in its sentence: what the `cale` family encodes, pairs and evaluates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Occurrence:
    """text[start:end] is the target word in its sentence; lemma is its base form."""

    text: str
    start: int
    end: int
    lemma: str

    @property
    def target(self) -> str:
        return self.text[self.start : self.end]
