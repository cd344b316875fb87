"""A paper's figure beside ours: does it lie where ours does, or at least on the same side of nothing?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.reading.published import Printed, published

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def with_published(findings: Findings, study: Study) -> Findings:
    """The findings with what the paper prints of each claim, in words. No passport holds it: it is no finding."""
    printed = published(study)
    if not printed:
        return findings
    return replace(
        findings,
        findings=tuple(
            replace(one, published=beside(printed[one.verdict.claim], one.verdict, one.larger_is_better))
            if one.verdict.claim in printed
            else one
            for one in findings.findings
        ),
    )


def beside(printed: Printed, verdict: Verdict, larger_is_better: bool) -> str:
    """The printed difference, and whether it is inside our interval, of the same sign, or not comparable.

    A figure of another backbone is compared in sign alone: its size is that model's.
    """
    figure = f"{printed.difference:+.4g}"
    if printed.not_comparable:
        return f"{figure}, not comparable: {printed.not_comparable}"
    elsewhere = bool(verdict.backbone) and _bare(printed.backbone) != _bare(verdict.backbone)
    told = f"{figure} on {printed.backbone}" if elsewhere else figure
    if verdict.delta_mean is None:
        return told
    theirs = printed.difference if larger_is_better else -printed.difference  # ours favour the treatment
    within = (
        verdict.ci_low is not None and verdict.ci_high is not None and verdict.ci_low <= theirs <= verdict.ci_high
    )
    if within and not elsewhere:
        return f"{told}, inside our interval"
    if theirs == 0 or verdict.delta_mean == 0:
        return f"{told}, no sign to compare"
    return f"{told}, {'same' if (theirs > 0) == (verdict.delta_mean > 0) else 'other'} sign"


def _bare(backbone: str) -> str:
    """A hub's name without its owner: bert-base-uncased is google-bert/bert-base-uncased."""
    return backbone.rpartition("/")[2].lower()
