"""Compares a difference that a paper prints with ours: is it inside our interval, or at least of the same sign?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.reading.published import Printed, published

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def with_published(findings: Findings, study: Study) -> Findings:
    """The findings with each claim's printed difference, in words. No passport holds these."""
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
    """The printed difference with its seeds, and whether it is inside our interval, of the same sign, or not
    comparable.

    For another backbone only the sign is compared, as the size depends on the model.
    """
    figure = f"{printed.difference:+.4g}"
    if printed.not_comparable:
        return f"{figure}, not comparable: {printed.not_comparable}"
    other_backbone = bool(verdict.backbone) and _bare(printed.backbone) != _bare(verdict.backbone)
    seeds = f"({printed.seeds} seed{'s' if printed.seeds > 1 else ''})"
    words = f"{figure} on {printed.backbone} {seeds}" if other_backbone else f"{figure} {seeds}"
    if verdict.delta_mean is None:
        return words
    theirs = printed.difference if larger_is_better else -printed.difference  # ours favour the treatment
    within = (
        verdict.ci_low is not None and verdict.ci_high is not None and verdict.ci_low <= theirs <= verdict.ci_high
    )
    if within and not other_backbone:
        return f"{words}, inside our interval"
    if theirs == 0 or verdict.delta_mean == 0:
        return f"{words}, no sign to compare"
    return f"{words}, {'same' if (theirs > 0) == (verdict.delta_mean > 0) else 'other'} sign"


def _bare(backbone: str) -> str:
    """A model's name without its owner: `bert-base-uncased` for `google-bert/bert-base-uncased`."""
    return backbone.rpartition("/")[2].lower()
