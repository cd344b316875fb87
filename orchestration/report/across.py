"""Summaries over several tasks, as papers print them: interquartile mean, probability of improvement, ASO.

They describe the scores beside the verdicts. No verdict uses them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from orchestration.report.tables import figure, places_for

if TYPE_CHECKING:
    from evaluators.significance.across_tasks import Described, Summary
    from evaluators.significance.comparisons import PairedSeeds
    from orchestration.verdicts.findings import Findings

ACROSS_HEAD = ("across tasks", "IQM treatment", "IQM control", "P(improvement)", "unpaired", "ASO", "seeds")


class Compared(NamedTuple):
    """A treatment and a control that a comparison names, on one backbone."""

    treatment: str
    control: str
    backbone: str


# what a table takes, in words
TAKES = "two arms of a claim on one backbone, with two seeds of two tasks whose headlines are better when larger"


@lru_cache(maxsize=2)  # one resampling for all forms of a report
def summaries(findings: Findings) -> Mapping[Compared, Summary]:
    """A summary for each compared pair of arms, over the headline metrics for which larger is better.

    A pair without two such tasks or two complete seeds is left out.
    """
    from evaluators.significance.across_tasks import summary

    named = dict.fromkeys(
        Compared(v.treatment, v.control, v.backbone) for v in (finding.verdict for finding in findings.findings)
    )
    found = {compared: summary(_pairs(findings, compared), "/".join(compared)) for compared in named}
    return {compared: one for compared, one in found.items() if one is not None}


def _pairs(findings: Findings, compared: Compared) -> dict[str, PairedSeeds]:
    """Headline metric -> the paired seeds of both arms, for metrics that both arms have."""
    from evaluators.significance.comparisons import pair

    pairs = {}
    for metric in findings.headlines:
        arms = [findings.values(arm, compared.backbone, metric) for arm in compared[:2]]
        if findings.metrics[metric] and all(arms):
            treatment, control = map(_by_seed, arms)
            pairs[metric] = pair(treatment, control, seeds=findings.seeds)
    return pairs


def _by_seed(values: Mapping[int | None, float]) -> dict[int, float] | float:
    """Seed -> score, or the one score of an untrained arm."""
    return values[None] if None in values else {seed: one for seed, one in values.items() if seed is not None}


def across(findings: Findings) -> tuple[Sequence[Sequence[str]], str]:
    """The rows below `ACROSS_HEAD`, and a caption that explains tasks and columns."""
    found = summaries(findings)
    several = len(findings.backbones) > 1
    rows = [
        (
            f"{compared.treatment} - {compared.control}" + (f" on {compared.backbone}" if several else ""),
            _interval(one.treatment_iqm),
            _interval(one.control_iqm),
            _interval(one.improvement),
            f"{one.unpaired:.2f}",
            f"{one.aso:.2f}",
            str(one.seeds),
        )
        for compared, one in found.items()
    ]
    return rows, _caption(found.values())


def _caption(found: Collection[Summary]) -> str:
    from evaluators.significance.across_tasks import RESAMPLES

    tasks = ", ".join(dict.fromkeys(task for one in found for task in one.tasks))
    labels = " and ".join(dict.fromkeys(one.improvement.label for one in found))
    return (
        f"{tasks}, every score as it is. A description: it decides no verdict. IQM: interquartile mean of all "
        "seeds and tasks; P(improvement): share of paired seeds and tasks in which the treatment is above; "
        f"unpaired: of all pairs of runs; brackets: seeds drawn within each task, {RESAMPLES:,} times ({labels}); "
        "ASO: bound on how far the treatment is from stochastic order, 0 to 1; below .5 it is almost "
        "stochastically larger"
    )


def _interval(estimate: Described) -> str:
    places = places_for((estimate.high - estimate.low) / 2)
    return f"{figure(estimate.value, places)} [{figure(estimate.low, places)}, {figure(estimate.high, places)}]"
