"""Histograms of the items of runs, for the report's plot: they show what a mean and a quantile hide.

No verdict needs them, and they read the items of every finished run: only reports with the plot compute them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from orchestration.families.registry import family
from orchestration.ledger.columns import numbers
from orchestration.ledger.entries.items import of_metric
from orchestration.verdicts.findings import Distribution, Findings

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger

BINS = 50


def with_distributions(findings: Findings, ledger: Ledger) -> Findings:
    """The findings with one histogram for each quantity of the family, arm and backbone, over all seeds.

    Arms without finished runs, or whose tasks do not yield the quantity, are left out.
    """
    distributions = [
        distribution
        for quantity, parts in family(findings.family).distributions.items()
        for distribution in _of_arms(findings, ledger, quantity, parts)
    ]
    return replace(findings, distributions=tuple(distributions))


def _of_arms(findings: Findings, ledger: Ledger, quantity: str, parts: Mapping[str, str]) -> list[Distribution]:
    values = {}
    for backbone in findings.backbones:
        for arm in findings.arms:
            rows = {row.id: row for row in findings.of(arm, backbone) if row.status == "finished"}
            records = [ledger.record_of(rows[run].entries) for run in sorted(rows)]
            by_part = {part: _items(ledger, records, metric) for part, metric in parts.items()}
            values[arm, backbone] = {part: items for part, items in by_part.items() if len(items)}
    all_items = [items for by_part in values.values() for items in by_part.values()]
    if not all_items:
        return []
    low, high = min(items.min() for items in all_items), max(items.max() for items in all_items)
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


def _items(ledger: Ledger, records: Sequence[Record], metric: str) -> np.ndarray:
    """The items of one metric in these runs. -> (M,)"""
    tables = [ledger.items(record.metrics[metric].entry) for record in records if metric in record.metrics]
    rows = [of_metric(table, metric) for table in tables]
    return np.concatenate([np.empty(0), *(numbers(table["value"]) for table in rows)])
