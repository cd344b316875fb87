"""How many seeds a claim needs, and what a number of seeds can show.

Effects are in units of the sd of the paired deltas (dz) unless said otherwise. Power is an integral over
the law of the sample sd rather than a noncentral t, which returns NaN for large noncentrality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import optimize, special

from evaluators.significance.seed_tests import seed_test, smallest_sign_flip_p

POWER = 0.80
CAP = 200  # beyond this many more seeds the number itself is no advice
TAIL = 1e-15

Aim = Literal["difference", "equivalent", "not worse"]


@lru_cache(maxsize=4096)
def _relative_sd(df: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of sqrt(V/df), V ~ chi² with df: 400 nodes and weights."""
    low, high = np.sqrt(2 * special.gammaincinv(df / 2, [TAIL, 1 - TAIL]))
    nodes, weights = _legendre()
    x = low + (high - low) * (nodes + 1) / 2
    log_density = (df - 1) * np.log(x) - x**2 / 2 - (df / 2 - 1) * np.log(2) - special.gammaln(df / 2)
    return x / np.sqrt(df), weights * np.exp(log_density) * (high - low) / 2


@lru_cache(maxsize=1)
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(400)


def power_of_t(noncentrality: float, df: float, alpha: float = 0.05) -> float:
    """Power of a two-sided t test; noncentrality = true mean / standard error."""
    sd, weight = _relative_sd(df)
    critical = special.stdtrit(df, 1 - alpha / 2) * sd
    return float(weight @ (special.ndtr(noncentrality - critical) + special.ndtr(-noncentrality - critical)))


def power_one_sided(noncentrality: float, df: float, alpha: float = 0.05) -> float:
    """Power of a one-sided t test; for "not worse" the noncentrality is margin / standard error."""
    sd, weight = _relative_sd(df)
    return float(weight @ special.ndtr(noncentrality - special.stdtrit(df, 1 - alpha) * sd))


def power_equivalence(margin_in_se: float, df: float, alpha: float = 0.05) -> float:
    """Power of TOST when the true mean is 0."""
    sd, weight = _relative_sd(df)
    inside = 2 * special.ndtr(margin_in_se - special.stdtrit(df, 1 - alpha) * sd) - 1
    return float(weight @ np.maximum(inside, 0))


def power_paired_t(n: int, dz: float, alpha: float = 0.05) -> float:
    """Power of the two-sided paired t test of n deltas."""
    return power_of_t(dz * math.sqrt(n), n - 1, alpha)


def smallest_effect(n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """Smallest dz that n deltas detect with the given power (minimum detectable effect)."""
    upper = 1.0
    while power_paired_t(n, upper, alpha) < power:
        upper *= 2
    return float(optimize.brentq(lambda dz: power_paired_t(n, dz, alpha) - power, 0, upper, xtol=1e-12))


def least_n(enough: Callable[[int], bool], *, cap: int) -> int | None:
    """Least n in 2..cap with `enough(n)`, which must stay true once true; None when there is none."""
    if not enough(cap):
        return None
    low, high = 1, cap
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def seeds_required(
    dz: float, *, aim: Aim = "difference", alpha: float = 0.05, power: float = POWER, cap: int = 10_000
) -> int | None:
    """Least number of seeds for an effect of dz, or for a margin of dz when the true difference is 0."""
    power_at = {"difference": power_of_t, "equivalent": power_equivalence, "not worse": power_one_sided}[aim]
    return least_n(lambda n: power_at(dz * math.sqrt(n), n - 1, alpha) >= power, cap=cap)


def crossed_df(v_seed: float, v_item: float, n: int, groups: int, variance: float | None = None) -> float:
    """Satterthwaite degrees of freedom of v_seed + v_item (variances of the mean over n seeds, M groups).

    variance: what the two come to when they overlap; None for their sum.
    """
    total = v_seed + v_item if variance is None else variance
    return total**2 / (v_seed**2 / (n - 1) + v_item**2 / (groups - 1))


def seeds_required_crossed(
    target: float, sd: float, v_item: float, groups: int, *, aim: Aim = "difference", alpha: float = 0.05, cap: int
) -> int | None:
    """Least number of seeds when the standard error also holds item variance, which seeds do not reduce.

    Difference: target / se >= t_{1-alpha/2} + t_{.80}; the other aims take their exact power at a true 0.
    """

    def enough(n: int) -> bool:
        v_seed = sd**2 / n
        df = crossed_df(v_seed, v_item, n, groups)
        ratio = target / math.sqrt(v_seed + v_item)
        if aim == "difference":
            return ratio >= special.stdtrit(df, 1 - alpha / 2) + special.stdtrit(df, POWER)
        power_at = power_equivalence if aim == "equivalent" else power_one_sided
        return power_at(ratio, df, alpha) >= POWER

    return least_n(enough, cap=cap)


def upper_sd_factor(n: int) -> float:
    """80 % upper confidence limit of the sd of n deltas, over their sample sd."""
    return math.sqrt((n - 1) / (2 * float(special.gammaincinv((n - 1) / 2, 0.2))))


@dataclass(frozen=True, kw_only=True)
class MoreSeeds:
    """Seeds still to run. `k`, `k_upper`: None means more than 200; upper takes the upper limit of the sd."""

    k: int | None
    k_upper: int | None
    settles: bool = True  # False: what hides the target is item noise, whatever the number of seeds


def more_seeds(
    n: int, target: float, sd: float, *, aim: Aim, alpha: float, v_item: float = 0.0, groups: int = 0
) -> MoreSeeds:
    """How many seeds beyond n reach power .80 for `target` (in metric units; a margin for the null aims)."""
    if v_item and (sd == 0 or target < _settled_by_infinitely_many(aim, alpha) * math.sqrt(v_item)):
        return MoreSeeds(k=None, k_upper=None, settles=False)

    def still(sd: float) -> int | None:
        if target <= 0:
            return None
        cap = n + CAP
        if v_item:
            least = seeds_required_crossed(target, sd, v_item, groups, aim=aim, alpha=alpha, cap=cap)
        else:
            least = seeds_required(target / sd, aim=aim, alpha=alpha, cap=cap)
        return None if least is None else max(1, least - n)

    return MoreSeeds(k=still(sd), k_upper=still(sd * upper_sd_factor(n)))


def _settled_by_infinitely_many(aim: Aim, alpha: float) -> float:
    """Target over item standard error below which no number of seeds reaches power .80 (2.80 at .05)."""
    if aim == "difference":
        return float(special.ndtri(1 - alpha / 2) + special.ndtri(POWER))
    reach = POWER if aim == "not worse" else (1 + POWER) / 2
    return float(special.ndtri(1 - alpha) + special.ndtri(reach))


@dataclass(frozen=True, kw_only=True)
class Reachable:
    """What n seeds can say about one claim of a family, known before any run."""

    test: str
    smallest_p: float  # of that test: 0.0 where p has no floor, 1.0 where there is no test
    sign_flip_floor: float  # 2^(1-n): what equal deltas, or an exact test, could reach at best
    can_decide: bool  # smallest_p times the number of claims stays within alpha
    smallest_effect: float | None  # at power .80 and alpha over the number of claims, in sds of the deltas
    smallest_difference: float | None  # the same times a given sd, in units of the metric


def reachable(n: int, claims: int = 1, *, sd: float | None = None, alpha: float = 0.05) -> Reachable:
    """The smallest p and the smallest detectable effect of n paired seeds in a family of `claims`."""
    test = seed_test(n, claims, alpha)
    floor = {"none": 1.0, "paired t": 0.0}.get(test, smallest_sign_flip_p(n))
    effect = smallest_effect(n, alpha / claims) if n >= 2 else None
    return Reachable(
        test=test,
        smallest_p=floor,
        sign_flip_floor=smallest_sign_flip_p(n) if n else 1.0,
        can_decide=floor * claims <= alpha,
        smallest_effect=effect,
        smallest_difference=effect * sd if effect is not None and sd is not None else None,
    )
