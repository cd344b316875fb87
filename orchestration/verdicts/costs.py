"""What training an arm costs, by the seconds that its own runs recorded; no verdict rests on it."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from orchestration.verdicts.findings import Cost, Findings

if TYPE_CHECKING:
    from orchestration.verdicts.findings import RunRow

ROWS = 1000


def with_costs(findings: Findings) -> Findings:
    """The cost of every arm on every backbone that was trained step by step, selection seeds left out."""
    found = []
    for backbone in findings.backbones:
        for arm, settings in findings.arms.items():
            finished = findings.finished(arm, backbone)
            seconds = [one for row in finished if (one := _a_step(row)) is not None]
            if not seconds:
                continue
            size = settings.get("batch_size")
            rows = ROWS / size if isinstance(size, int) and size > 0 else None
            step = median(seconds)
            found.append(
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
    return replace(findings, costs=tuple(found))


def _a_step(row: RunRow) -> float | None:
    """Seconds of training over steps; None for a run that was not trained, or recorded neither."""
    steps = row.curve[-1][0] if row.curve else 0
    return row.training / steps if row.training and steps else None
