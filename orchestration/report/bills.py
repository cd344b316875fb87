"""The table of costs: for each claim the number of its runs, their time, energy and money."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestration.plan.bill import total
from orchestration.report.tables import NONE
from orchestration.study.names import amount
from orchestration.study.run import on

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Findings

BILL_HEAD = ("claim", "runs", "hours", "GPU-hours", "kWh", "money")


def bill_caption(rows: Sequence[Sequence[str]]) -> str:
    """The caption of the table with these rows."""
    partly = " (2 of 4: as many recorded it)" if any(" of " in runs for _, runs, *_ in rows) else ""
    return (
        f"what the runs behind each claim took{partly}: hours of a lane, kWh where machine and card tell them, "
        "money where a price was given; a run of several claims counts for each"
    )


def bill_rows(findings: Findings) -> list[tuple[str, ...]]:
    """A row for each claim with runs that recorded their cost."""
    rows: list[tuple[str, ...]] = []
    several = len(findings.backbones) > 1
    for finding in findings.findings:
        behind = [run for place in finding.places for run in findings.finished(*place)]
        recorded = [run.cost for run in behind if run.cost]
        if not recorded:
            continue
        bill, verdict = total(recorded), finding.verdict
        rows.append(
            (
                verdict.claim + (on(verdict.backbone) if several else ""),
                f"{bill.runs} of {len(behind)}" if bill.runs < len(behind) else str(bill.runs),
                amount(bill.hours),
                amount(bill.gpu_hours) if bill.gpu_hours else NONE,
                bill.energy().replace(" kWh", "") or NONE,
                f"{bill.money(findings.price):.2f}" if findings.price else NONE,
            )
        )
    return rows
