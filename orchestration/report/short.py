"""Sums up the verdicts of a study in one sentence, for the end of the terminal's output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestration.study.names import listed

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Findings

NAMED = 5  # claims listed by name


def in_short(findings: Findings) -> str:
    """Which claims came out as declared, which did not, and which are open; "" for a study without claims."""
    whole = [finding.verdict for finding in findings.findings if not finding.verdict.part_of]
    verdicts = [verdict for verdict in whole if not verdict.exploratory]
    late = [verdict.claim for verdict in whole if verdict.exploratory]
    if not findings.findings:
        return ""
    if not verdicts:
        return (
            "in short  no claim was declared with these seeds and rows before the runs: what is above is a lead "
            "to follow, and no finding"
        )
    held = [v for v in verdicts if v.as_expected]
    unfinished = {(run.arm, run.backbone) for run in findings.runs if run.status != "finished"}
    waiting = {f.verdict.id for f in findings.findings if not unfinished.isdisjoint(f.places)}
    open_yet = [v for v in verdicts if v.as_expected is None and v.id in waiting]
    left_open = [v for v in verdicts if v.as_expected is None and v.id not in waiting]
    against = [v for v in verdicts if v.as_expected is False]
    several = len(findings.backbones) > 1

    def names(chosen: Sequence[Verdict]) -> str:
        called = [f"{v.claim} on {v.backbone}" if several and v.backbone else v.claim for v in chosen]
        return listed(called, NAMED)

    parts = []
    if held:
        parts.append(f"{names(held)} came out as expected")
    if against:
        parts.append(f"{names(against)} did not")
    if left_open:
        parts.append(f"{names(left_open)} cannot be told from these seeds and items")
    if open_yet:
        parts.append(f"{names(open_yet)} cannot be told yet: runs are missing")
    if late:
        were = "was" if len(late) == 1 else "were"
        parts.append(f"{len(late)} more {were} not declared with these seeds and rows before the runs")
    counted = f"{len(held)} of {len(verdicts)} claims {'holds' if len(held) == 1 else 'hold'}"
    return f"in short  {counted}: {'; '.join(parts)}"
