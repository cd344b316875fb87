"""Several tasks at once: one delta per seed for a verdict, and the aggregates papers print beside it.

IQM, probability of improvement (Agarwal et al. 2021) and almost stochastic order (Dror et al. 2019) describe;
none of them decides. Scores must have been normalised per task by a rule declared beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.evidence import stream
from evaluators.significance.level import ALPHA

RESAMPLES = 10_000
ASO_RESAMPLES = 1_000


def _complete(parts: Sequence[PairedSeeds]) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """The seeds complete in every task, and both arms' scores at them, larger is better: (n,), (n, T), (n, T)."""
    seeds = tuple(seed for seed in parts[0].seeds if all(seed in part.seeds for part in parts))

    def scores(arm: str) -> np.ndarray:
        rows = [[part.sign * getattr(part, arm)[part.seeds.index(seed)] for part in parts] for seed in seeds]
        return np.array(rows).reshape(len(seeds), len(parts))

    return seeds, scores("treatment"), scores("control")


def iqm(scores: np.ndarray) -> np.ndarray:
    """Interquartile mean of all values: a 25 % trimmed mean. (..., n, T) seeds x tasks -> (...)."""
    values = scores.reshape(*scores.shape[:-2], -1)
    cut = values.shape[-1] // 4
    kept = slice(cut, values.shape[-1] - cut)  # as `scipy.stats.trim_mean`, which takes most of a second to load
    return np.partition(values, (kept.start, kept.stop - 1), axis=-1)[..., kept].mean(axis=-1)


def probability_of_improvement(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of paired seeds and tasks in which x is above y; ties count half. (..., n, T) twice -> (...)."""
    return np.mean((x > y) + 0.5 * (x == y), axis=(-2, -1))


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
    statistic: Callable[..., np.ndarray],
    *arms: np.ndarray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Described:
    """A statistic of (n, T) arms with a percentile interval: seeds drawn within each task, alike for all arms."""
    n, tasks = arms[0].shape
    rows = rng.integers(0, n, size=(resamples, n, tasks))
    values = statistic(*(arm[rows, np.arange(tasks)] for arm in arms))  # (resamples,)
    low, high = np.quantile(values, [0.025, 0.975])
    label = "descriptive" if n < 10 else "95 % bootstrap interval"
    return Described(float(statistic(*arms)), float(low), float(high), label)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Two arms over several tasks, each score as it is: what papers print. None of it decides.

    improvement counts paired seeds, unpaired all pairs of runs. aso: bound of the violation ratio of "the
    treatment's mean over tasks lies stochastically above the control's".
    """

    tasks: tuple[str, ...]
    seeds: int
    treatment_iqm: Described
    control_iqm: Described
    improvement: Described
    unpaired: float
    aso: float


def summary(pairs: Mapping[str, PairedSeeds], comparison: str) -> Summary | None:
    """The two arms over these tasks at the seeds complete in all of them; None with fewer than two of either.

    comparison names the random streams, so that the same scores give the same intervals.
    """
    if len(pairs) < 2:
        return None
    seeds, treatment, control = _complete(list(pairs.values()))
    if len(seeds) < 2:
        return None
    return Summary(
        tasks=tuple(pairs),
        seeds=len(seeds),
        treatment_iqm=described(iqm, treatment, rng=stream(comparison, "iqm")),
        control_iqm=described(iqm, control, rng=stream(comparison, "iqm")),
        improvement=described(
            probability_of_improvement, treatment, control, rng=stream(comparison, "improvement")
        ),
        unpaired=unpaired_improvement(treatment, control),
        aso=aso_bound(treatment.mean(1), control.mean(1), stream(comparison, "aso")),
    )


def aso_violation(a: np.ndarray, b: np.ndarray) -> float:
    """How far a is from being stochastically above b: 0 always above, 1 always below, ½ when equal everywhere.

    ∫ (G⁻¹ - F⁻¹)²₊ / ∫ (G⁻¹ - F⁻¹)²,   F⁻¹, G⁻¹ the quantile steps of a and b.
    """
    return float(_violations(a[None], b[None])[0])


def _violations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`aso_violation` of every row. (B, n_a), (B, n_b) -> (B,)"""
    na, nb = a.shape[1], b.shape[1]
    ticks = np.unique(np.concatenate([np.arange(na + 1) * nb, np.arange(nb + 1) * na]))  # in units of 1/(na·nb)
    width, left = np.diff(ticks).astype(float), ticks[:-1]
    gap = np.sort(b).take(left // na, axis=1) - np.sort(a).take(left // nb, axis=1)
    squares, above = gap**2, np.maximum(gap, 0) ** 2
    part, total = np.vecdot(above, width), np.vecdot(squares, width)  # a product of matrices adds up otherwise
    return np.divide(part, total, out=np.full(len(gap), 0.5), where=total != 0)


def aso_bound(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> float:
    """Upper bound of the violation ratio (a "better" is often read below 0.2); arms are resampled unpaired."""
    scale = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    ratio = aso_violation(a, b)
    places = rng.integers(0, np.repeat([len(a), len(b)], [len(a), len(b)]), (ASO_RESAMPLES, len(a) + len(b)))
    drawn = _violations(a[places[:, : len(a)]], b[places[:, len(a) :]])
    sigma = np.std(scale * (drawn - ratio), ddof=1)
    return float(np.clip(ratio + sigma * special.ndtri(1 - ALPHA) / scale, 0, 1))
