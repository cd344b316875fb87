"""How the items of a run lie: what a mean and a quantile hide, counted in bins for the report's plot.

Verdicts need none of it, and it reads the items of every finished run: only who draws the plot asks for it.
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
    """For each quantity that the family shows, the items of every arm on every backbone, all its seeds together.

    Arms that are not finished, or whose tasks do not yield the quantity, are left out.
    """
    found = [
        one
        for quantity, parts in family(findings.family).distributions.items()
        for one in _of_arms(findings, ledger, quantity, parts)
    ]
    return replace(findings, distributions=tuple(found))


def _of_arms(findings: Findings, ledger: Ledger, quantity: str, parts: Mapping[str, str]) -> list[Distribution]:
    values = {}
    for backbone in findings.backbones:
        for arm in findings.arms:
            rows = {row.id: row for row in findings.of(arm, backbone) if row.status == "finished"}
            records = [ledger.record_of(rows[run].entries) for run in sorted(rows)]
            by_part = {part: _items(ledger, records, metric) for part, metric in parts.items()}
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


def _items(ledger: Ledger, records: Sequence[Record], metric: str) -> np.ndarray:
    """The items of one metric in these runs. -> (M,)"""
    tables = [ledger.items(record.metrics[metric].entry) for record in records if metric in record.metrics]
    rows = [of_metric(table, metric) for table in tables]
    return np.concatenate([np.empty(0), *(numbers(table["value"]) for table in rows)])
