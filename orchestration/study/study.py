"""A study: question, arms, seeds and comparisons as declared in one YAML file, checked to the last field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestration.study.blocks import Comparison, Resources, Search, Seeds


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
    compare: tuple[Comparison, ...] = ()
    search: Search | None = None
    resources: Resources = field(default_factory=Resources)

    @property
    def comparisons(self) -> Iterator[tuple[Comparison, str]]:
        """Every comparison with each backbone it is made on: the family of claims that Holm corrects for."""
        for comparison in self.compare:
            for backbone in (comparison.backbone,) if comparison.backbone else self.backbones:
                yield comparison, backbone
