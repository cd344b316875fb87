"""A study: question, arms, seeds and comparisons as declared in one YAML file, checked to the last field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.significance.claims import Claim, Declared
from orchestration.study.blocks import Resources, Search, Seeds


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study that passed every check, named after its file.

    arms: the family's settings, `train:` merged in. figures: metric -> figures, of each `mean(…)` and `each(…)` in
    its claims and its search.
    """

    name: str
    path: Path
    question: str
    family: str
    backbones: tuple[str, ...]
    seeds: Seeds
    data: Any
    arms: Mapping[str, Any]
    evaluate: tuple[str, ...]
    compare: tuple[Declared, ...] = ()
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    search: Search | None = None
    resources: Resources = field(default_factory=Resources)

    @property
    def claims(self) -> Iterator[Declared]:
        """Every declared claim, once for each backbone that it is made on, with all its parts."""
        for claim in self.compare:
            yield from self.judged(claim)

    def judged(self, claim: Declared) -> list[Declared]:
        """The declared claim, once for each backbone that it is made on, with all its parts."""
        return [one.resolved(self.figures) for one in claim.each(self.backbones)]

    @property
    def parts(self) -> Iterator[Claim]:
        """Every single difference that is judged, including those of joint claims."""
        for claim in self.claims:
            yield from claim.parts

    def figures_of(self, metric: str) -> tuple[str, ...]:
        """The figures that a metric is the mean of; usually the metric itself."""
        return self.figures.get(metric, (metric,))
