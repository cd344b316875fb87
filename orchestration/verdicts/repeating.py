"""Compares two executions of one run: does the seed fix its results?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal

from orchestration.ledger.entries.items import of_metric
from orchestration.ledger.repeats import Reproduction

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run

NEARLY = 1e-6  # processors may round sums in another order


def compared(run: Run, first: Ledger, second: Ledger) -> Reproduction:
    """Compare the scores and items of one run in two ledgers."""
    differences = _differences(run, first, second)
    worst, metric = max(((gap, metric) for metric, gap in differences), default=(0.0, ""))
    outcome: Literal["same bits", "same to 1e-6", "different"] = "same bits"
    if worst > 0:
        outcome = "same to 1e-6" if worst <= NEARLY else "different"
    return Reproduction(
        run=run.id,
        label=run.label,
        outcome=outcome,
        metric=metric if worst else "",
        difference=worst if math.isfinite(worst) else None,
    )


def _differences(run: Run, first: Ledger, second: Ledger) -> Iterator[tuple[str, float]]:
    """Metric and difference of every figure and item; infinite where only one execution has it."""
    one, two = first.record(run), second.record(run)
    for metric in dict.fromkeys(chain(one.metrics, two.metrics)):
        left, right = one.metrics.get(metric), two.metrics.get(metric)
        if left is None or right is None:
            yield metric, math.inf
            continue
        yield metric, _apart(left.value, right.value)
        items, others = _items(first, left.entry, metric), _items(second, right.entry, metric)
        if items.keys() != others.keys():
            yield metric, math.inf
        else:
            yield from ((metric, _apart(value, others[item])) for item, value in items.items())


def _items(ledger: Ledger, entry: str, metric: str) -> dict[str, float]:
    rows = of_metric(ledger.items(entry), metric)
    return dict(zip(rows["item_id"].to_pylist(), rows["value"].to_pylist(), strict=True))


def _apart(left: float, right: float) -> float:
    if math.isnan(left) and math.isnan(right):
        return 0.0
    gap = abs(left - right)
    return math.inf if math.isnan(gap) else gap
