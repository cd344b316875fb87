"""Adding seeds until the claim is decided, with an error rate that survives looking after every seed.

Method: Gaussian mixture over the standardised effect with a right-Haar mixture over the sd, a test
martingale of the scale-invariant filtration (Wang & Ramdas 2023, after Lai 1976). It assumes independent
Gaussian deltas, an order of seeds fixed beforehand, and a stopping rule that never looks at the raw scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluators.significance.level import ALPHA
from evaluators.significance.seed_tests import ROUNDING, magnitude

LARGEST = math.log(np.finfo(float).max)  # of an e-value: hundreds of seeds have none that is a number


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """Rules declared before the first delta: tau2, the variance of the effect mixture, and the maximum of seeds.

    start: the seeds that always run; before them nothing stops for futility.
    """

    tau2: float = 2.0
    n_max: int = 20
    start: int = 2

    def __post_init__(self) -> None:
        if not self.tau2 > 0 or self.n_max < 2 or self.start < 1:
            raise ValueError(
                f"sequential: tau2 = {self.tau2}, n_max = {self.n_max}, start = {self.start}; "
                "accepted: tau2 > 0, n_max >= 2, start >= 1"
            )


def running_moments(deltas: np.ndarray, scale: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd (ddof 1) of every prefix. (..., n) -> two (..., n); the sd is exactly 0 without spread.

    scale: the largest |score| behind the deltas, if known, which determines their rounding.
    """
    size = magnitude(deltas)
    deltas = np.ldexp(deltas, -size)
    mean = np.zeros(deltas.shape)
    sd = np.zeros(deltas.shape)
    centre = np.zeros(deltas.shape[:-1])
    squares = np.zeros(deltas.shape[:-1])
    for k in range(deltas.shape[-1]):
        step = deltas[..., k] - centre
        centre = centre + step / (k + 1)
        squares = squares + step * (deltas[..., k] - centre)
        mean[..., k] = centre
        sd[..., k] = np.sqrt(squares / max(k, 1))
    largest = np.maximum(np.maximum.accumulate(np.abs(deltas), axis=-1), math.ldexp(scale, -size))
    sd[sd <= ROUNDING * largest] = 0.0
    return np.ldexp(mean, size), np.ldexp(sd, size)


def e_values(deltas: np.ndarray, tau2: float, null: float = 0.0, scale: float = 0.0) -> np.ndarray:
    """E-process against a mean of `null` after every seed. (..., n) -> (..., n).

        E_n = r^(-1/2) [(1 + t²/(n-1)) / (1 + t²/((n-1) r))]^(n/2),   r = 1 + n tau²

    A prefix without spread holds E = 1: equal deltas must not stop a study. Beyond all numbers it is the largest.
    """
    mean, sd = running_moments(deltas, scale)
    n = np.arange(1, deltas.shape[-1] + 1)
    spread = sd > 0
    t = np.where(spread, (mean - null) / np.where(spread, sd, 1.0), 0.0)
    t2_over_df = t**2 * n / np.maximum(n - 1, 1)
    return np.where(spread, np.exp(np.minimum(log_e(t2_over_df, n, tau2), LARGEST)), 1.0)


def log_e(t2_over_df: np.ndarray, n: np.ndarray, tau2: float) -> np.ndarray:
    """Log of the e-process after n seeds, n >= 2, by t²/(n-1) of their mean."""
    r = 1 + n * tau2
    return (n / 2) * (np.log1p(t2_over_df) - np.log1p(t2_over_df / r)) - np.log(r) / 2


def e_at_t(t: float, n: int, tau2: float) -> float:
    """The e-process after n seeds as a function of their t statistic; n >= 2."""
    r = 1 + n * tau2
    x = t * t / (n - 1)
    return math.exp((n / 2) * (math.log1p(x) - math.log1p(x / r)) - math.log(r) / 2)


def smallest_anytime_p(n: int, tau2: float) -> float:
    """The least p that n seeds can reach, however large their t: 1 / sup E = r^(-(n-1)/2), r = 1 + n tau2."""
    return (1 + n * tau2) ** (-(n - 1) / 2)


def level_of_t(n: int, tau2: float, level: float) -> float:
    """The two-sided level of a t test of n seeds that rejects where the e-process crosses 1/level after them.

    Looking earlier can only reject more often, so the power of that test is a lower bound. level: at least
    `smallest_anytime_p`.
    """
    from scipy import optimize, special

    seeds, rejects = np.asarray(n), -math.log(level)  # by logarithms: hundreds of seeds have no E that is a number
    t = optimize.brentq(lambda t: float(log_e(np.asarray(t * t / (n - 1)), seeds, tau2)) - rejects, 0.0, 1e6)
    return 2 * float(special.stdtr(n - 1, -t))


def confidence_sequence(
    deltas: np.ndarray, tau2: float, alpha: float = ALPHA, scale: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Limits after every seed that hold at all n at once. (n,) -> two (n,); infinite where too few seeds.

    half width = s sqrt((n-1) x / n),  x = r(c-1)/(r-c),  c = (sqrt(r)/alpha)^(2/n);  the whole line if c >= r.
    """
    mean, sd = running_moments(deltas, scale)
    n = np.arange(1, len(deltas) + 1)
    r = 1 + n * tau2
    c = (np.sqrt(r) / alpha) ** (2 / n)
    bounded = (c < r) & (sd > 0)
    x = np.where(bounded, r * (c - 1) / np.where(bounded, r - c, 1.0), 0.0)
    half = np.where(bounded, sd * np.sqrt((n - 1) * x / n), np.inf)
    return mean - half, mean + half


@dataclass(frozen=True)
class Anytime:
    """The evidence of a growing set of deltas, readable after every seed; same questions as an `Estimate`.

    scale: as of `running_moments`.
    """

    deltas: tuple[float, ...]
    tau2: float
    scale: float = 0.0

    @property
    def path(self) -> np.ndarray:
        return e_values(np.array(self.deltas), self.tau2, scale=self.scale)

    @property
    def mean(self) -> float:
        """The mean at the look with the strongest evidence, whose sign is the direction of a rejection."""
        return float(running_moments(np.array(self.deltas))[0][np.argmax(self.path)])

    @property
    def p(self) -> float:
        """Anytime p of a zero mean: 1 / the largest e-value so far."""
        return min(1.0, 1 / float(self.path.max()))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Intersection of the confidence sequence up to now."""
        low, high = confidence_sequence(np.array(self.deltas), self.tau2, alpha, self.scale)
        return float(low.max()), float(high.min())

    def p_above(self, bound: float) -> float:
        """The smallest level at which the confidence sequence lay above `bound` at some look."""
        return self._p_beside(bound, 1)

    def p_below(self, bound: float) -> float:
        return self._p_beside(bound, -1)

    def p_interval_below(self, bound: float) -> float:
        return self._p_beside(bound, -1)

    def p_equivalent(self, margin: float) -> float:
        return max(self.p_above(-margin), self.p_below(margin))

    def _p_beside(self, bound: float, side: int) -> float:
        deltas = np.array(self.deltas)
        there = side * (running_moments(deltas)[0] - bound) > 0
        path = e_values(deltas, self.tau2, bound, self.scale)
        return min(1.0, 1 / float(np.max(path, where=there, initial=1.0)))


def seeds_until(target: float, sd: float, *, tau2: float, level: float, n_max: int) -> int | None:
    """Seeds at which an effect of exactly `target` crosses 1/level: about the median stopping time."""
    for n in range(2, n_max + 1):
        if e_at_t(target / sd * math.sqrt(n), n, tau2) >= 1 / level:
            return n
    return None
