"""What a study of frozen cosines could gain before it trains anything, and how a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.metrics.headroom import Headroom
    from trainers.difficulty.data import TaskData


@lru_cache(maxsize=8)  # the data sets of a job, of which every run asks
def look(data: TaskData) -> Headroom:
    """The headroom of one task, with the judge's doubt among the signals where there is a judge."""
    from evaluators.metrics.headroom import headroom

    doubts = data.evaluation.candidate_targets()
    return headroom(data.task, data.evaluation.anchor, doubts, data.train.candidate_targets())


def table(found: Sequence[Headroom]) -> str:
    """Every task in a block of lines: the frozen baseline, what follows its errors, what to do."""
    return "\n\n".join("\n".join(_lines(one)) for one in found)


def _lines(one: Headroom) -> list[str]:
    def figures(values: Mapping[str, float]) -> str:
        return "   ".join(f"{name} {value:+.3f}" for name, value in values.items())

    lines = [
        f"{one.task}   {one.pairs} pairs   Spearman {one.spearman:.4f}   Pearson {one.pearson:.4f}   "
        f"|cos - gold| {one.err_mean:.3f} ± {one.err_std:.3f}",
        f"  follows the error:   {figures(one.alignment)}",
        f"  of a sentence:       {figures(one.sentence_alignment)}",
        f"  target and 1 - gold: {figures(one.target_is_label)}",
        f"  gold 0: {one.share_zero:.0%}   gold 1: {one.share_one:.0%}",
    ]
    return [*lines, *(f"  {flag}" for flag in one.flags), f"  {one.advice}"]
