"""Variance components: a crossed design over random factors, and each factor's share in the variance.

The model is y = mean + sum of one effect a factor + rest, all effects random and independent. In an orthogonal
array of strength 2 every two levels of two factors meet exactly once, so what two or more factors do together
falls into the rest and nowhere else, and the mean squares have

    E[MS of a factor] = rest + levels · component,      E[MS of the rest] = rest.

Sources: Bose (1938) for the array of a prime number of levels; Searle, Casella and McCulloch, Variance Components
(1992), chapter 4, for the mean squares; Weerahandi (1995), Exact Statistical Methods for Data Analysis, chapter 4,
for generalised intervals. Those are of normal effects, and hold up to the truncation of a component at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

LEVELS = (3, 5, 7, 11)  # primes, on which an orthogonal array can be built
DRAWS = 20_000  # for generalised intervals: between two sets of draws a bound differs by less than a point
COVERAGE = 0.95


@dataclass(frozen=True, kw_only=True)
class VariancePart:
    """A part of the variance of one run: its variance, and its share in the whole with an interval."""

    variance: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Components:
    """The parts of the variance of one run. rest: interactions of factors, and all else. sd: of the whole."""

    factors: Mapping[str, VariancePart]
    rest: VariancePart
    mean: float
    sd: float
    runs: int


def crossed(factors: int, levels: int) -> np.ndarray:
    """The level of every factor in every run: (levels², factors), an orthogonal array of strength 2.

    Row 0 is level 0 throughout. ValueError where the rest would be left without a degree of freedom.
    """
    if levels not in LEVELS or not 2 <= factors < levels + 1:
        accepted = f"2 to {levels} factors, at {', '.join(map(str, LEVELS))} levels"
        raise ValueError(f"{factors} factors at {levels} levels\n  accepted: {accepted}")
    first, second = np.divmod(np.arange(levels**2), levels)
    return np.stack([first, *((second + step * first) % levels for step in range(factors - 1))], axis=1)


def components(scores: Sequence[float], names: Sequence[str], design: np.ndarray) -> Components:
    """The variance components of one score a run. design (runs, factors), as `crossed` gives it."""
    y = np.asarray(scores, dtype=float)
    levels, mean = int(design.max()) + 1, float(np.mean(scores))
    squares = np.array([_between(y, design[:, factor], levels) for factor in range(len(names))])
    degrees = len(y) - 1 - len(names) * (levels - 1)
    left = max(float(((y - mean) ** 2).sum() - squares.sum()), 0.0)

    def parts(of_factors: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
        """Components of mean squares, those of the factors first. (F, N), (N,) -> (F + 1, N)."""
        return np.vstack([np.maximum(of_factors - of_rest, 0.0) / levels, of_rest])

    found = parts((squares / (levels - 1))[:, None], np.array([left / degrees]))[:, 0]
    draws = np.random.default_rng(0)
    drawn = parts(
        squares[:, None] / draws.chisquare(levels - 1, (len(names), DRAWS)),
        left / draws.chisquare(degrees, DRAWS),
    )
    whole = np.maximum(drawn.sum(0), np.finfo(float).tiny)
    low, high = np.quantile(drawn / whole, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=1)
    total = float(found.sum())
    shares = [
        VariancePart(variance=float(v), share=float(v) / total if total else 0.0, low=float(lo), high=float(hi))
        for v, lo, hi in zip(found, low, high, strict=True)
    ]
    return Components(
        factors=dict(zip(names, shares[:-1], strict=True)),
        rest=shares[-1],
        mean=mean,
        sd=total**0.5,
        runs=len(y),
    )


def _between(y: np.ndarray, level: np.ndarray, levels: int) -> float:
    """The sum of squares between the levels of a factor."""
    means = np.array([y[level == one].mean() for one in range(levels)])
    return float(levels * ((means - y.mean()) ** 2).sum())
