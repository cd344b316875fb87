"""How many seeds a claim needs, and what a number of seeds can show.

Power is computed for the verdict's own interval: the paired t, or the crossed t if items are sampled too. It is an
integral over the distributions of the estimated variances, not a noncentral t, which returns NaN for large
noncentrality. Sign-flip tests have no closed form; the power of the paired t is used (within 2 points from 8
seeds).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from scipy import special

from evaluators.significance.level import ALPHA, POWER

CAP = 200  # beyond this many more seeds the number itself is no advice
TAIL = 1e-15
SECANTS = 12
NODES = 400, 40  # of the laws of the two variances, of seeds and of items
FEW_NODES = 64, 24  # a tenth of them: from 5 seeds and 50 groups on, effects within 2e-7 of what all give
NEAR = 1e-6

Aim = Literal["difference", "equivalent", "not worse"]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Standard deviations of a delta, in units of the metric.

    sd: of the deltas of single seeds. item: of the mean over infinitely many seeds, due to the sample of items.
    cell: the part of sd due to single (seed, item) cells, which is in the items' variance too. groups: independent
    groups of items; 0, and no noise of theirs, if items are not sampled. item_df: degrees of freedom of the items'
    variance; None for groups - 1.
    """

    sd: float = 1.0
    item: float = 0.0
    cell: float = 0.0
    groups: int = 0
    item_df: float | None = None


@lru_cache(maxsize=4096)
def _relative_sd(df: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of sqrt(V/df), V ~ chi² with df: nodes and weights."""
    low, high = np.sqrt(2 * special.gammaincinv(df / 2, [TAIL, 1 - TAIL]))
    places, weights = _legendre(nodes)
    x = low + (high - low) * (places + 1) / 2
    log_density = (df - 1) * np.log(x) - x**2 / 2 - (df / 2 - 1) * np.log(2) - special.gammaln(df / 2)
    return x / np.sqrt(df), weights * np.exp(log_density) * (high - low) / 2


@lru_cache
def _legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    return special.roots_legendre(nodes)  # numpy's takes nine times as long at 700


def power(
    n: float,
    noise: Noise,
    *,
    aim: Aim = "difference",
    effect: float = 0.0,
    margin: float = 0.0,
    alpha: float = ALPHA,
    nodes: tuple[int, int] = NODES,
) -> float:
    """Probability that n seeds show the aim if the true difference is `effect`. n may be infinite.

    Aims: a difference from 0 (two-sided), |difference| below the margin (TOST), difference above -margin. nodes:
    the numbers of quadrature nodes, for seeds and items.
    """
    scale = max(noise.sd, noise.item, abs(effect), margin)
    v_seed, v_cell = (noise.sd / scale) ** 2 / n, (noise.cell / scale) ** 2 / n
    v_item = (noise.item / scale) ** 2 + v_cell
    variance = max(v_seed + v_item - v_cell, v_seed, v_item)
    effect, margin, se = effect / scale, margin / scale, math.sqrt(variance)
    tail = alpha / 2 if aim == "difference" else alpha
    item_df = noise.groups - 1 if noise.item_df is None else noise.item_df
    half, weights = _half_widths(n, item_df, v_seed, v_item, variance, tail, nodes)
    return float(np.sum(weights * _shown(aim, half, effect / se, margin / se)))


@lru_cache(maxsize=8)  # a search for an effect asks for the same ones again and again
def _half_widths(
    n: float, item_df: float, v_seed: float, v_item: float, variance: float, tail: float, nodes: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of the interval's half-width, in standard errors: nodes and weights, seeds across, items down."""
    half, weights = np.zeros((1, 1)), np.ones((1, 1))
    of_seeds, of_items = nodes
    for variance_of, df, places, axis in ((v_seed, n - 1, of_seeds, 1), (v_item, item_df, of_items, 0)):
        if variance_of:
            relative, weight = (np.expand_dims(part, axis) for part in _relative_sd(df, places))
            half = half + special.stdtrit(df, tail) ** 2 * variance_of * relative**2
            weights = weights * weight
    return np.sqrt(variance / (v_seed + v_item) * half) / math.sqrt(variance), weights


def _shown(aim: Aim, half: np.ndarray, effect: float, margin: float) -> np.ndarray:
    """The chance of the aim given the half-width of the interval; all in standard errors."""
    match aim:
        case "difference":
            return special.ndtr(effect - half) + special.ndtr(-effect - half)
        case "equivalent":
            inside = special.ndtr(margin - half - effect) - special.ndtr(half - margin - effect)
            return np.maximum(inside, 0)
        case "not worse":
            return special.ndtr(margin + effect - half)


def power_paired_t(n: int, dz: float, alpha: float = ALPHA) -> float:
    """Power of the two-sided paired t test of n deltas."""
    return power(n, Noise(), effect=dz, alpha=alpha)


@lru_cache
def smallest_effect(n: float, alpha: float = ALPHA, noise: Noise | None = None) -> float:
    """Smallest difference that n deltas detect with power .80; in sds of the deltas without `noise`.

    Looked for with few nodes first: with all of them the power is then asked for some four times, not fifteen.
    """
    noise = noise or Noise()
    upper = max(noise.sd, noise.item)

    @cache  # the ends of a search are asked for twice
    def lacking(effect: float, nodes: tuple[int, int] = NODES) -> float:
        return power(n, noise, effect=effect, alpha=alpha, nodes=nodes) - POWER

    def roughly(effect: float) -> float:
        return lacking(effect, FEW_NODES)

    while roughly(upper) < 0:
        upper *= 2
    rough = halved(roughly, 0.0, upper, within=NEAR * upper / 100, near=(upper / 2, upper))
    near = rough * (1 - NEAR), rough * (1 + NEAR)
    # Where the upper place of `near` is shown, so is `upper`, which need not be asked for
    while lacking(min(near[1], upper)) < 0 and lacking(upper) < 0:
        upper *= 2
    return halved(lacking, 0.0, upper, within=1e-12 * upper, near=near)


def halved(
    rising: Callable[[float], float],
    low: float,
    high: float,
    *,
    within: float,
    near: tuple[float, float] | None = None,
) -> float:
    """Where a function that rises from below 0 to above it is 0, by bisection.

    A few steps of the secant narrow it down first, and the forty of the bisection ask only for what these leave
    open. Scipy's own finders take a quarter of a second to load. near: two places between which it probably is.
    """
    halvings = max(0, math.ceil(math.log2((high - low) / within)))
    apart = (high - low) / 2**halvings  # of the last places that the bisection asks for
    found = near and _narrowed(rising, *near, low, apart)
    below, above = found or _narrowed(rising, low, high, low, apart) or (low, high)
    while high - low > within:
        middle, off = (low + high) / 2, apart / 4  # but for rounding, a place that was asked for is met again
        is_above = middle > above - off or (middle > below + off and rising(middle) >= 0)
        low, high = (low, middle) if is_above else (middle, high)
    return (low + high) / 2


def _narrowed(
    rising: Callable[[float], float], low: float, high: float, first: float, apart: float
) -> tuple[float, float] | None:
    """Two places between these, the function below 0 at the first and not at the second (Illinois's rule); None
    where it is not so at these.

    It asks for places of the bisection alone, which lie so far apart from the first on: that need not ask again.
    """
    at_low, at_high, side = rising(low), rising(high), 0
    if not at_low < 0 <= at_high:
        return None
    for _ in range(SECANTS):
        steps = (low - at_low * (high - low) / (at_high - at_low) - first) / apart
        after, before = math.floor((low - first) / apart) + 1, math.ceil((high - first) / apart) - 1
        place = first + min(max(math.floor(steps), after), before) * apart
        if not low < place < high:
            break
        value = rising(place)
        if value >= 0:
            high, at_high = place, value
            at_low, side = (at_low / 2 if side > 0 else at_low), 1
        else:
            low, at_low = place, value
            at_high, side = (at_high / 2 if side < 0 else at_high), -1
    return low, high


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
    noise: Noise,
    *,
    aim: Aim = "difference",
    effect: float = 0.0,
    margin: float = 0.0,
    alpha: float = ALPHA,
    power_asked: float = POWER,
    cap: int = 10_000,
) -> int | None:
    """Least number of seeds that show the aim with the power asked for; None: more than `cap`, or no number."""
    return least_n(
        lambda n: power(n, noise, aim=aim, effect=effect, margin=margin, alpha=alpha) >= power_asked, cap=cap
    )


def upper_sd_factor(n: int) -> float:
    """80 % upper confidence limit of the sd of n deltas, over their sample sd."""
    return math.sqrt((n - 1) / (2 * float(special.gammaincinv((n - 1) / 2, 0.2))))


@dataclass(frozen=True, kw_only=True)
class MoreSeeds:
    """Seeds still to run; `k_upper` at the upper limit of the sd. None: more than 200, or than a growing study's
    maximum."""

    k: int | None
    k_upper: int | None
    settles: bool = True  # False: what hides the target is item noise, whatever the number of seeds


def more_seeds(
    n: int, noise: Noise, *, aim: Aim, alpha: float, effect: float = 0.0, margin: float = 0.0
) -> MoreSeeds:
    """How many seeds beyond n reach power .80 where the true difference is `effect`."""

    def shown(seeds: float) -> bool:
        return power(seeds, noise, aim=aim, effect=effect, margin=margin, alpha=alpha) >= POWER

    if noise.item and (noise.sd == 0 or not shown(math.inf)):
        return MoreSeeds(k=None, k_upper=None, settles=False)

    def still(noise: Noise) -> int | None:
        least = seeds_required(noise, aim=aim, effect=effect, margin=margin, alpha=alpha, cap=n + CAP)
        return None if least is None else max(1, least - n)

    return MoreSeeds(k=still(noise), k_upper=still(replace(noise, sd=noise.sd * upper_sd_factor(n))))
