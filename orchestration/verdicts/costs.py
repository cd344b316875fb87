"""The training time of each arm, from the seconds that its runs recorded. No verdict uses it."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from orchestration.verdicts.findings import Cost, Findings

if TYPE_CHECKING:
    from orchestration.verdicts.findings import RunRow

ROWS = 1000


def with_costs(findings: Findings) -> Findings:
    """The findings with the cost of every arm and backbone that trains in steps, without selection seeds."""
    costs = []
    for backbone in findings.backbones:
        for arm, settings in findings.arms.items():
            finished = findings.finished(arm, backbone)
            seconds = [one for row in finished if (one := _seconds_a_step(row)) is not None]
            if not seconds:
                continue
            size = settings.get("batch_size")
            rows = ROWS / size if isinstance(size, int) and size > 0 else None
            step = median(seconds)
            costs.append(
                Cost(
                    arm=arm,
                    backbone=backbone,
                    runs=len(seconds),
                    a_step=step,
                    least=min(seconds),
                    most=max(seconds),
                    thousand_rows=None if rows is None else rows * step,
                )
            )
    return replace(findings, costs=tuple(costs))


def _seconds_a_step(row: RunRow) -> float | None:
    """Seconds of training for each step; None for a run that was not trained or did not record them."""
    steps = row.curve[-1][0] if row.curve else 0
    return row.training / steps if row.training and steps else None
