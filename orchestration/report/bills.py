"""What each verdict cost, as rows of text: the runs behind it, their time, energy and money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.plan.bill import total
from orchestration.report.tables import NONE

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Findings

BILL_HEAD = ("claim", "runs", "hours", "GPU-hours", "kWh", "money")
BILL_CAPTION = (
    "what the runs behind each claim took: hours of a lane, kWh where machine and card tell them, money where a "
    "price was given; a run of several claims counts for each"
)


def bill_rows(findings: Findings) -> list[tuple[str, ...]]:
    """A row for each claim, of those of its runs that recorded what they took; none where no run did."""
    rows: list[tuple[str, ...]] = []
    for finding in findings.findings:
        behind = [run for place in finding.places for run in findings.of(*place) if run.cost and not run.selection]
        if not behind:
            continue
        bill = total([run.cost for run in behind])
        rows.append(
            (
                finding.verdict.claim,
                str(bill.runs),
                f"{bill.hours:.3g}",
                f"{bill.gpu_hours:.3g}" if bill.gpu_hours else NONE,
                bill.energy(3).replace(" kWh", "") or NONE,
                f"{bill.money(findings.price):.2f}" if findings.price else NONE,
            )
        )
    return rows
