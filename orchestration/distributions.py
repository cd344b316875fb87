"""How the items of a run lie: what a mean and a quantile hide, counted in bins for the report's plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from orchestration.families import family
from orchestration.findings import Distribution

if TYPE_CHECKING:
    from orchestration.verdicts import Evidence

BINS = 50


def distributions(evidence: Evidence) -> tuple[Distribution, ...]:
    """For each quantity that the family shows, the items of every arm on every backbone, all its seeds together.

    Arms that are not finished, or whose tasks do not yield the quantity, are left out.
    """
    return tuple(
        found
        for quantity, parts in family(evidence.study.family).distributions.items()
        for found in _of_arms(evidence, quantity, parts)
    )


def _of_arms(evidence: Evidence, quantity: str, parts: Mapping[str, str]) -> list[Distribution]:
    values = {}
    for backbone in evidence.study.backbones:
        for arm in evidence.study.arms:
            runs = sorted(set(evidence.finished(arm, backbone).values()))
            by_part = {part: _items(evidence, runs, metric) for part, metric in parts.items()}
            values[arm, backbone] = {part: items for part, items in by_part.items() if len(items)}
    every = [items for by_part in values.values() for items in by_part.values()]
    if not every:
        return []
    low, high = min(items.min() for items in every), max(items.max() for items in every)
    return [
        Distribution(
            quantity=quantity,
            arm=arm,
            backbone=backbone,
            low=float(low),
            high=float(high),
            counts={
                part: tuple(np.histogram(items, BINS, (low, high))[0].tolist()) for part, items in by_part.items()
            },
            means={part: float(items.mean()) for part, items in by_part.items()},
        )
        for (arm, backbone), by_part in values.items()
        if by_part
    ]


def _items(evidence: Evidence, runs: list[str], metric: str) -> np.ndarray:
    """The items of one metric of these runs. -> (M,)"""
    tables = [evidence.item_rows(run, metric) for run in runs]
    return np.concatenate([np.empty(0), *(table["value"].to_numpy() for table in tables)])
