"""Early stopping: should a run of a search go on, by its development scores so far?

    goes_on(StopEarly(rule="median", at=(20, 40)), [0.31], [[0.35, 0.40], [0.36], [0.33, 0.41], [0.38, 0.37]])

Scores are larger-is-better. Runs of one seed are compared with each other, so that the luck of a seed cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from orchestration.study.blocks import StopEarly


def goes_on(rule: StopEarly, curve: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Whether a run may go on after its last development score.

    curve: the run's scores, one per look. others: the scores so far of other runs with the same seed.
    """
    mine = [_ordered(score) for score in curve]
    comparable = [[_ordered(score) for score in other[: len(mine)]] for other in others if len(other) >= len(mine)]
    if len(comparable) < rule.least:
        return True
    if rule.rule == "median":
        return max(mine) >= median(fmean(other) for other in comparable)
    ranked = sorted([mine[-1], *(other[-1] for other in comparable)], reverse=True)
    return mine[-1] >= ranked[max(1, len(ranked) // rule.one_in) - 1]


def _ordered(score: float) -> float:
    """The score, -inf if it is not finite: worse than all others."""
    return score if math.isfinite(score) else -math.inf
