"""Tests of the mean of n deltas over paired seeds.

A delta is the metric of the treatment minus that of the control at one seed, positive if the treatment is better.
Only the paired t and the sign-flip test decide verdicts; the sign test, Wilcoxon's test and the BCa interval are
descriptive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from evaluators.metrics.item_metrics import mid_ranks
from evaluators.significance.level import ALPHA

EXACT_FLIPS = 16  # up to 2^16 sign vectors are enumerated; with more seeds they are drawn
DRAWN_FLIPS = 100_000
FLIPS_AT_A_TIME = 10_000
EXACT_WILCOXON = 25
ENUMERATED_BCA = 6  # 6^6 = 46,656 resamples
DRAWN_BCA = 20_000
SMALLEST_TAIL = 1e-300  # p values below it are 0
ROUNDING = 1e-12  # relative: differences below it are floating-point noise, not data


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error and degrees of freedom: Student's t, or the crossed t if items are sampled.

    The seeds' part of the variance has `df` degrees of freedom; the items' part, a share `item_share` of the sum,
    has `item_df`. The crossed t's critical value combines the t of both parts,

        c(tail)² = (1 - item_share) t²_{df}(tail) + item_share t²_{item_df}(tail)

    so that a seed variance that is small by chance does not give the seeds the items' degrees of freedom, as
    Satterthwaite's approximation does (type-I error .127 at two seeds). With one part alone it is Student's t.
    """

    mean: float
    se: float
    df: float
    item_df: float = 1.0
    item_share: float = 0.0

    @property
    def t(self) -> float:
        return self.mean / self.se

    @property
    def p(self) -> float:
        """Two-sided p of a zero mean."""
        return 2 * self._beyond(abs(self.mean))

    def interval(self, alpha: float) -> tuple[float, float]:
        half = float(critical(alpha / 2, self.df, self.item_df, self.item_share)) * self.se
        return self.mean - half, self.mean + half

    def p_above(self, bound: float) -> float:
        """One-sided p of the null hypothesis that the mean is at most `bound`."""
        return self._beyond(self.mean - bound)

    def p_below(self, bound: float) -> float:
        """One-sided p of the null hypothesis that the mean is at least `bound`."""
        return self._beyond(bound - self.mean)

    def p_interval_below(self, bound: float) -> float:
        """Smallest alpha at which the two-sided interval lies below `bound`."""
        return min(1.0, 2 * self.p_below(bound))

    def p_equivalent(self, margin: float) -> float:
        """Two one-sided tests (TOST): p of the null hypothesis that |mean| is at least `margin`."""
        return max(self.p_above(-margin), self.p_below(margin))

    def _beyond(self, distance: float) -> float:
        """The tail whose critical value is `distance` in standard errors; above ½ for a negative one."""
        if distance < 0:
            return 1.0 - self._beyond(-distance)
        return tail_at(distance / self.se, self.df, self.item_df, self.item_share)


def critical(tail: float, df: float, item_df: float, item_share: float | np.ndarray) -> float | np.ndarray:
    """Standard errors that leave `tail` <= ½ beyond one side; `Estimate` gives the formula."""
    of_seeds, of_items = special.stdtrit(df, tail), special.stdtrit(item_df, tail)
    return np.hypot(np.sqrt(1 - item_share) * of_seeds, np.sqrt(item_share) * of_items)


def tail_at(errors: float, df: float, item_df: float, item_share: float) -> float:
    """The inverse of `critical`: the tail beyond so many standard errors >= 0."""
    tails = [float(special.stdtr(one, -errors)) for one in (df, item_df)]
    if item_share in (0, 1):
        return tails[int(item_share)]
    low, high = max(min(tails), SMALLEST_TAIL), max(tails)
    if high <= SMALLEST_TAIL or low == high:
        return high

    from scipy import optimize  # slow to load, and a plan need not wait for it

    def excess(log_tail: float) -> float:
        return float(critical(math.exp(log_tail), df, item_df, item_share)) - errors

    ends = math.log(low) - 1e-9, min(math.log(0.5), math.log(high) + 1e-9)
    if excess(ends[0]) <= 0:
        return low
    if excess(ends[1]) > 0:  # near ½, where scipy's quantiles of 4 degrees of freedom are off by some 1e-8
        return high
    return math.exp(optimize.brentq(excess, *ends, xtol=1e-14, rtol=1e-14))


def paired_t(deltas: np.ndarray, scale: float | None = None) -> Estimate:
    """Estimate of the mean of (n,) deltas, n >= 2, not all equal. `scale`: largest |score| behind them."""
    n = len(deltas)
    if n < 2:
        raise ValueError(f"paired t: {n} deltas, accepted: at least 2")
    if spread_is_rounding(deltas, scale):
        raise ValueError("paired t: the deltas are all equal, so they have no standard error")
    return Estimate(float(np.mean(deltas)), float(sd(deltas) / np.sqrt(n)), n - 1)


def sd(values: np.ndarray) -> float:
    """Standard deviation with n - 1 in the denominator, without overflow for values of any size."""
    size = magnitude(values)
    return math.ldexp(float(np.std(np.ldexp(values, -size), ddof=1)), size)


def magnitude(values: np.ndarray) -> int:
    """The exponent of the power of two just above the largest value; dividing by it brings values near 1."""
    return math.frexp(float(np.max(np.abs(values), initial=0.0)))[1]


def spread_is_rounding(deltas: np.ndarray, scale: float | None = None) -> bool:
    """True if the sd of the deltas is rounding error. `scale`: largest |score| behind them."""
    largest = np.max(np.abs(deltas)) if scale is None else scale
    return bool(len(deltas) < 2 or sd(deltas) <= ROUNDING * largest)


def levelled(deltas: np.ndarray, scale: float) -> np.ndarray:
    """Signed ranks of the deltas' sizes, (n,): 0 for a delta that is rounding; sizes that differ by rounding tie.

    scale: of the scores. So 0.81 - 0.80 and 0.75 - 0.74 get the same level, although the floats differ.
    """
    sizes = np.append(0.0, np.abs(deltas))
    order = np.argsort(sizes)
    level = np.empty(len(sizes))
    level[order] = np.cumsum(np.diff(sizes[order], prepend=0.0) > ROUNDING * scale)
    return np.sign(deltas) * level[1:]


@dataclass(frozen=True)
class SignTest:
    positive: int
    negative: int
    zero: int
    p: float


def sign_test(deltas: np.ndarray) -> SignTest:
    """Exact two-sided binomial test of the signs; zeros are dropped and reported."""
    positive, negative = int(np.sum(deltas > 0)), int(np.sum(deltas < 0))
    signs = positive + negative
    below = sum(math.comb(signs, k) for k in range(min(positive, negative) + 1))  # exact, as a count of 2^signs
    return SignTest(positive, negative, len(deltas) - signs, min(1.0, 2 * below / 2**signs))


@dataclass(frozen=True)
class Wilcoxon:
    w_plus: float
    p: float


def wilcoxon(deltas: np.ndarray) -> Wilcoxon:
    """Signed-rank test without zeros, exact also under ties up to 25 deltas.

    Mid-ranks are doubled so that they are integers; the null law of their signed sum is a product of
    (1 + z^rank)/2. Above 25: normal with tie correction and continuity 1/2.
    """
    kept = deltas[deltas != 0]
    n = len(kept)
    ranks = mid_ranks(np.abs(kept))
    w_plus = float(ranks[kept > 0].sum())
    if n <= EXACT_WILCOXON:
        law = np.ones(1)
        for doubled in np.rint(2 * ranks).astype(int):
            law = (np.pad(law, (0, doubled)) + np.pad(law, (doubled, 0))) / 2
        at = round(2 * w_plus)
        return Wilcoxon(w_plus, min(1.0, 2 * float(min(law[: at + 1].sum(), law[at:].sum()))))
    variance = float(np.sum(ranks**2)) / 4  # equals n(n+1)(2n+1)/24 less the tie correction
    distance = abs(w_plus - n * (n + 1) / 4)
    return Wilcoxon(w_plus, float(2 * special.ndtr(-max(distance - 0.5, 0) / np.sqrt(variance))))


@dataclass(frozen=True)
class SignFlip:
    p: float
    p_greater: float


def smallest_sign_flip_p(n: int) -> float:
    """The smallest p that n deltas can reach: 2^(1-n), or one draw in 100,001."""
    return max(2.0 ** (1 - n), 1 / (1 + DRAWN_FLIPS))


def sign_flip(deltas: np.ndarray, rng: np.random.Generator | None = None) -> SignFlip:
    """Sign-flip test of the mean: exact up to 16 deltas, beyond from 100,000 draws of `rng`.

    The identity counts itself, so p is never 0. Sums are compared with a relative tolerance: without it
    the identity can lose against its own rounding.
    """
    observed = float(np.sum(deltas))
    slack = ROUNDING * float(np.max(np.abs(deltas))) * len(deltas)
    if len(deltas) <= EXACT_FLIPS:
        sums = np.zeros(1)
        for delta in deltas:
            sums = np.concatenate([sums + delta, sums - delta])
        p = np.mean(np.abs(sums) >= abs(observed) - slack)
        return SignFlip(float(p), float(np.mean(sums >= observed - slack)))
    if rng is None:
        raise ValueError(f"sign-flip test of {len(deltas)} deltas draws sign vectors: it needs a generator")
    extreme = greater = 0
    for _ in range(DRAWN_FLIPS // FLIPS_AT_A_TIME):
        signs = rng.integers(0, 2, size=(FLIPS_AT_A_TIME, len(deltas))) * 2.0 - 1
        sums = signs @ deltas
        extreme += int(np.sum(np.abs(sums) >= abs(observed) - slack))
        greater += int(np.sum(sums >= observed - slack))
    return SignFlip((1 + extreme) / (1 + DRAWN_FLIPS), (1 + greater) / (1 + DRAWN_FLIPS))


@dataclass(frozen=True)
class BCa:
    low: float
    high: float
    z0: float
    a: float


def bca(deltas: np.ndarray, rng: np.random.Generator | None = None) -> BCa | None:
    """Bias-corrected accelerated bootstrap interval of the mean: a description, not a test.

    All n^n resamples for n <= 6, else 20,000 of `rng`. None without spread. Source: Efron 1987; z0 splits ties as
    scipy does.
    """
    n = len(deltas)
    if spread_is_rounding(deltas):
        return None
    size = magnitude(deltas)
    deltas = np.ldexp(deltas, -size)
    means = _resampled_means(deltas, rng)
    slack = ROUNDING * np.max(np.abs(deltas))
    below = np.mean(means < deltas.mean() - slack) + np.mean(means <= deltas.mean() + slack)
    z0 = float(special.ndtri(below / 2))
    u = (deltas - deltas.mean()) / (n - 1)  # mean of the jackknife values minus each of them
    a = float(np.sum(u**3) / (6 * np.sum(u**2) ** 1.5))
    z = special.ndtri(np.array([ALPHA / 2, 1 - ALPHA / 2]))
    low, high = np.quantile(means, special.ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))))
    return BCa(math.ldexp(float(low), size), math.ldexp(float(high), size), z0, a)


def _resampled_means(deltas: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    n = len(deltas)
    if n <= ENUMERATED_BCA:
        sums = np.zeros(1)
        for _ in range(n):
            sums = (sums[:, None] + deltas).ravel()
        return sums / n
    if rng is None:
        raise ValueError(f"BCa interval of {n} deltas draws resamples: it needs a generator")
    return rng.choice(deltas, size=(DRAWN_BCA, n)).mean(1)


def effect_dz(deltas: np.ndarray) -> float:
    """Mean over sd of the paired deltas; never comparable with a two-sample d."""
    return float(np.mean(deltas) / sd(deltas))


def hedges_factor(n: int) -> float:
    """Exact small-sample factor J of Hedges 1981 for n paired deltas, n >= 3."""
    if n < 3:
        raise ValueError(f"Hedges' factor: {n} deltas, accepted: at least 3")
    nu = n - 1
    return float(np.exp(special.gammaln(nu / 2) - special.gammaln((nu - 1) / 2)) / np.sqrt(nu / 2))


def seed_test(n: int, claims: int) -> str:
    """The name of the deciding test for n deltas of one claim among `claims`; it never depends on the data.

    The sign-flip test loses too much power unless its smallest possible p is a fifth of the level that the group's
    correction leaves: from 8 seeds on, in a larger group from more.
    """
    if n < 2:
        return "none"
    if smallest_sign_flip_p(n) <= ALPHA / (5 * claims):
        return "exact sign-flip" if n <= EXACT_FLIPS else "sign-flip (100,000 draws)"
    return "paired t"


def seed_p(
    deltas: np.ndarray, t: Estimate | None, *, claims: int, rng: Callable[[], np.random.Generator]
) -> tuple[str, float]:
    """Name and p of the deciding test over n >= 2 seeds. t: from `paired_t`; None if the deltas have no spread."""
    if t is None:
        return "sign-flip (degenerate)", sign_flip(np.full_like(deltas, deltas.mean()), rng()).p
    test = seed_test(len(deltas), claims)
    return test, t.p if test == "paired t" else sign_flip(deltas, rng()).p
