"""Several tasks at once: one delta per seed for a verdict, and the aggregates papers print beside it.

IQM, probability of improvement (Agarwal et al. 2021) and almost stochastic order (Dror et al. 2019) describe;
none of them decides. Scores must have been normalised per task by a rule declared beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from evaluators.comparisons import PairedSeeds

ASO_THRESHOLD = 0.2
RESAMPLES = 10_000


def over_tasks(pairs: Mapping[str, PairedSeeds]) -> PairedSeeds:
    """The mean over tasks of each arm's score, for the seeds complete in every task; larger is better."""
    parts = list(pairs.values())
    seeds = [seed for seed in parts[0].seeds if all(seed in part.seeds for part in parts)]
    reasons = {seed: reason for part in parts for seed, reason in part.dropped}

    def mean(arm: str) -> tuple[float, ...]:
        rows = [[part.sign * getattr(part, arm)[part.seeds.index(seed)] for seed in seeds] for part in parts]
        return tuple(float(value) for value in np.mean(rows, axis=0))

    return PairedSeeds(
        seeds=tuple(seeds),
        treatment=mean("treatment"),
        control=mean("control"),
        dropped=tuple(sorted(reasons.items())),
        tasks=tuple(pairs),
        selected=any(part.selected for part in parts),
    )


def iqm(scores: np.ndarray) -> float:
    """Interquartile mean of all values of (n, T) seeds x tasks: a 25 % trimmed mean."""
    return float(stats.trim_mean(scores, 0.25, axis=None))


def probability_of_improvement(x: np.ndarray, y: np.ndarray) -> float:
    """Share of paired seeds and tasks, both (n, T), in which x is above y; ties count half."""
    return float(np.mean((x > y) + 0.5 * (x == y)))


def unpaired_improvement(x: np.ndarray, y: np.ndarray) -> float:
    """Share of all run pairs per task in which x is above y, mean over tasks. (n_x, T), (n_y, T)."""
    return float(np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y)))


@dataclass(frozen=True)
class Described:
    value: float
    low: float
    high: float
    label: str


def described(
    statistic: Callable[..., float], *arms: np.ndarray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Described:
    """A statistic of (n, T) arms with a percentile interval: seeds drawn within each task, alike for all arms."""
    n, tasks = arms[0].shape
    columns = np.arange(tasks)
    draws = rng.integers(0, n, size=(resamples, n, tasks))
    values = [statistic(*(arm[rows, columns] for arm in arms)) for rows in draws]
    low, high = np.quantile(values, [0.025, 0.975])
    return Described(
        statistic(*arms), float(low), float(high), "descriptive" if n < 10 else "95 % bootstrap interval"
    )


def aso_violation(a: np.ndarray, b: np.ndarray) -> float:
    """How far a is from being stochastically above b: 0 always above, 1 always below, ½ when equal everywhere.

    ∫ (G⁻¹ - F⁻¹)²₊ / ∫ (G⁻¹ - F⁻¹)²,   F⁻¹, G⁻¹ the quantile steps of a and b.
    """
    na, nb = len(a), len(b)
    ticks = np.unique(np.concatenate([np.arange(na + 1) * nb, np.arange(nb + 1) * na]))  # in units of 1/(na·nb)
    width, left = np.diff(ticks), ticks[:-1]
    gap = np.sort(b)[left // na] - np.sort(a)[left // nb]
    total = float(width @ gap**2)
    return float(width @ np.maximum(gap, 0) ** 2) / total if total else 0.5


def aso_bound(
    a: np.ndarray, b: np.ndarray, rng: np.random.Generator, resamples: int = 1_000, alpha: float = 0.05
) -> float:
    """Upper bound of the violation ratio (a "better" is often read below 0.2); arms are resampled unpaired."""
    scale = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    ratio = aso_violation(a, b)
    drawn = [aso_violation(rng.choice(a, len(a)), rng.choice(b, len(b))) for _ in range(resamples)]
    sigma = np.std(scale * (np.array(drawn) - ratio), ddof=1)
    return float(np.clip(ratio + sigma * special.ndtri(1 - alpha) / scale, 0, 1))
