"""Racing over seeds: is the next seed of a point worth its run?

A point is compared with the best one at the seeds that both have, so what a seed does to every point cancels out.
The noise of such a difference is estimated from all points and seeds so far.

    chance_to_win(scores, point=3, best=0)      # scores (points, seeds), nan where a seed was not run
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special


def noise(scores: np.ndarray) -> tuple[float, int]:
    """Sd of one score around its point's and its seed's effect, and its degrees of freedom.

    scores (P, S), nan where missing. Least squares of the additive model, in closed form. (nan, 0) without a
    degree of freedom.
    """
    present = ~np.isnan(scores)
    rows = present.sum(1) > 0
    present, values = present[rows], np.where(present, scores, 0.0)[rows]
    counts = present.sum(1)  # (P,)
    freedom = int(present.sum() - len(counts) - (present.any(0).sum() - 1))
    if freedom < 1:
        return math.nan, 0
    centred = np.where(present, values - (values.sum(1) / counts)[:, None], 0.0)
    weights = present.astype(float)
    normal = np.diag(weights.sum(0)) - (weights / counts[:, None]).T @ weights  # (S, S)
    seed_sums = centred.sum(0)  # (S,)
    residual = float((centred**2).sum() - seed_sums @ np.linalg.pinv(normal) @ seed_sums)
    return math.sqrt(max(residual, 0.0) / freedom), freedom


def chance_to_win(scores: np.ndarray, point: int, best: int) -> float:
    """Probability that a point's mean over all S seeds ends above that of the best point, which has them all.

    With mean difference d over r common seeds and sd s of a single difference, the mean over all S is
    t-distributed around d with scale s · sqrt((S - r) / (S r)). 1.0 if the noise is unknown.
    """
    common = ~np.isnan(scores[point]) & ~np.isnan(scores[best])
    r, seeds = int(common.sum()), scores.shape[1]
    sd, freedom = noise(scores)
    if not freedom or not r:
        return 1.0
    difference = float((scores[point] - scores[best])[common].mean())
    scale = sd * math.sqrt(2 * (seeds - r) / (seeds * r))
    if scale == 0:
        return 1.0 if difference > 0 else 0.0
    return float(special.stdtr(freedom, difference / scale))
