"""How far recipes move between seeds, as others published it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import stdev

import yaml

TABLE = Path(__file__).with_name("published_seeds.yaml")


@dataclass(frozen=True, kw_only=True)
class SeedSpread:
    """How far a figure moves over seeds, as a fraction (.0084, not .84 points). seeds: how many runs told."""

    metric: str
    sd: float
    seeds: int
    source: str


@cache
def published() -> Mapping[str, SeedSpread]:
    """Recipes whose figure of every seed was published, by name; published_seeds.yaml holds their source."""
    table = yaml.safe_load(TABLE.read_text())
    return {
        name: SeedSpread(
            metric=one["metric"],
            sd=stdev(one["points"]) / 100,
            seeds=len(one["points"]),
            source=f"{len(one['points'])} published seeds of {name}, Simple-SimCSE (Tsukagoshi 2022)",
        )
        for name, one in table.items()
    }
