"""A study: question, arms, seeds and comparisons as declared in one YAML file, checked to the last field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.significance.claims import Claim
from orchestration.study.blocks import Resources, Search, Seeds


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study that passed every check, named after its file. arms: the family's settings, `train:` merged in."""

    name: str
    path: Path
    question: str
    family: str
    backbones: tuple[str, ...]
    seeds: Seeds
    data: Any
    arms: Mapping[str, Any]
    evaluate: tuple[str, ...]
    compare: tuple[Claim, ...] = ()
    search: Search | None = None
    resources: Resources = field(default_factory=Resources)

    @property
    def claims(self) -> Iterator[Claim]:
        """What is judged: every declared claim on each backbone that it is made on."""
        for claim in self.compare:
            yield from claim.each(self.backbones)
