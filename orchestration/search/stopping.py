"""Early stopping: is a run of a search worth going on with, by its development scores so far?

    goes_on(StopEarly(rule="median", at=(20, 40)), [0.31], [[0.35, 0.40], [0.36], [0.33, 0.41], [0.38, 0.37]])

Scores are larger-is-better. Runs of one seed are compared with each other, so that the luck of a seed cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from orchestration.study.blocks import StopEarly


def goes_on(rule: StopEarly, curve: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Whether a run may go on after the last of its looks.

    curve: the run's scores, one a look; others: those of the other runs with its seed, as far as each came.
    """
    mine = [_ordered(score) for score in curve]
    there = [[_ordered(score) for score in other[: len(mine)]] for other in others if len(other) >= len(mine)]
    if len(there) < rule.least:
        return True
    if rule.rule == "median":
        return max(mine) >= median(fmean(other) for other in there)
    ranked = sorted([mine[-1], *(other[-1] for other in there)], reverse=True)
    return mine[-1] >= ranked[max(1, len(ranked) // rule.one_in) - 1]


def _ordered(score: float) -> float:
    """A score that is no number is worse than all others."""
    return score if math.isfinite(score) else -math.inf
