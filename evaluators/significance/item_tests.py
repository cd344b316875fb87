"""Tests with item-level scores: the crossed t over seeds and items, and tests for one run of each arm.

Items are a sample as much as seeds are. With item noise a t test over seeds alone rejects a true null of
"the task" far too often (17 %, 34 %, 50 % at 3, 5, 10 seeds), because more seeds do not make more items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from evaluators.metrics.counted_metrics import sized
from evaluators.metrics.item_metrics import mid_ranks, placements
from evaluators.significance.item_bootstrap import (
    RESAMPLES,
    Undefined,
    aggregates,
    jackknife_item_variance,
    resampled_deltas,
    two_level_of,
)
from evaluators.significance.paired_items import Items, ItemScores
from evaluators.significance.power import Noise
from evaluators.significance.seed_tests import ROUNDING, Estimate

SQUARED = (1e-140, 1e140)  # magnitudes whose squares, and sums of these, neither overflow nor underflow
FIELLER = 1.06  # variance of atanh of a rank correlation, relative to a product-moment one


def crossed_t(deltas: np.ndarray, v_item: float, groups: float, v_both: float = 0.0) -> Estimate:
    """Mean of (n,) deltas with seed and item variance; n >= 2 seeds. groups: the items' effective groups.

    V = s²/n + V_item - V_both, where the first two terms have degrees of freedom of their own (`Estimate`). Noise
    of a single cell (one seed, one item) is in both of them; V_both subtracts it once, but V is never below either
    term, as in the variance of two-way clusters (Cameron, Gelbach, Miller 2011). Raises ValueError if both
    variances are 0.
    """
    v_seed = float(np.var(deltas, ddof=1) / len(deltas))
    if v_seed + v_item == 0:
        raise ValueError("crossed t: neither seeds nor items vary")
    variance = max(v_seed + v_item - v_both, v_seed, v_item)
    share = v_item / (v_seed + v_item)
    return Estimate(float(np.mean(deltas)), float(np.sqrt(variance)), len(deltas) - 1, groups - 1, share)


@dataclass(frozen=True)
class ItemVariance:
    """v_item: variance over items of the delta averaged over n seeds. v_both: the part that is in s²/n as well."""

    v_item: float
    v_both: float
    method: str

    def noise(self, sd: float, n: int, items: Items | ItemView) -> Noise:
        """The noise that further seeds would have. sd: of the n deltas. items: the items of this variance.

        The cells' part of the items' variance is limited to the variance of the deltas.
        """
        cell = min(math.sqrt(n * self.v_both), sd)
        item = math.sqrt(max(0.0, self.v_item - cell**2 / n))
        return Noise(sd=sd, item=item, cell=cell, groups=items.groups, item_df=items.effective - 1)

    @staticmethod
    def of(averaged: float, per_seed: np.ndarray, method: str) -> ItemVariance:
        """From the item variance of the averaged delta, and those (n,) of each seed's delta.

        The cells' part shrinks with n, the items' common part does not: a single seed's variance exceeds that of
        the average by (n - 1) V_both.
        """
        n = len(per_seed)
        both = max(0.0, float(np.mean(per_seed)) - averaged) / (n - 1) if n > 1 else 0.0
        return ItemVariance(averaged, both, method)


@dataclass(frozen=True)
class ItemView:
    """The items' variance of the seed-averaged delta, and the two-level interval if it was computed.

    groups, effective: see `Items`.
    """

    variance: ItemVariance
    groups: int
    effective: float
    two_level: tuple[float, float] | None


def item_view(items: Items, sign: int, rng: np.random.Generator, *, interval: bool = True) -> ItemView:
    """Item variance in closed form if there is one, else from 2,000 resamples; by the jackknife if the metric is
    undefined in more than 5 % of them.

    The two-level interval reuses the resamples of items, with 5 draws of seeds each; sign -1 is for metrics that
    are better when smaller. interval=False leaves it out, and with it the resamples if there is a closed form.
    Raises Undefined if a class has fewer than two groups, or one group nearly all items.
    """
    if not interval:
        return ItemView(item_variance(items, rng), items.groups, items.effective, None)
    _check(items)
    deltas = resampled_deltas(items, rng, RESAMPLES)
    limits = None if deltas is None else two_level_of(sign * deltas, rng, seed_draws=5)
    variance = closed_form_variance(items) or _resampled(items, deltas)
    return ItemView(variance, items.groups, items.effective, limits)


def item_variance(items: Items, rng: np.random.Generator, resamples: int = RESAMPLES) -> ItemVariance:
    """Only the variance of `item_view`."""
    _check(items)
    return closed_form_variance(items) or _resampled(items, resampled_deltas(items, rng, resamples))


def _resampled(items: Items, deltas: np.ndarray | None) -> ItemVariance:
    if deltas is None:
        return ItemVariance(jackknife_item_variance(items), 0.0, "jackknife")
    return resampled_variance(items, deltas)


def resampled_variance(items: Items, deltas: np.ndarray) -> ItemVariance:
    """Item variance from deltas (n, B) under B resamples of these items."""
    averaged, per_seed = float(deltas.mean(0).var(ddof=1)), deltas.var(1, ddof=1)
    return ItemVariance.of(items.shortfall * averaged, items.shortfall * per_seed, "bootstrap")


def closed_form_variance(items: Items) -> ItemVariance | None:
    """Item variance where a formula exists: means over groups of equal size, balanced accuracy without groups."""
    if not isinstance(items, ItemScores):
        return None
    sizes = np.bincount(items.group_index)
    if items.aggregate == "mean" and sizes.min() == sizes.max():
        differences = items.treatment - items.control
        of = partial(mean_item_variance, group_index=items.group_index)
    elif items.aggregate == "balanced_accuracy" and sizes.max() == 1:
        assert items.gold is not None
        positive = items.gold == 1
        correct = [((rows > 0.5) == positive).astype(float) for rows in (items.treatment, items.control)]
        differences = correct[0] - correct[1]
        of = partial(_balanced_accuracy_variance, positive=positive)
    else:
        return None
    return ItemVariance.of(of(differences), np.array([of(row[None]) for row in differences]), "analytic")


def mean_item_variance(differences: np.ndarray, group_index: np.ndarray | None = None) -> float:
    """s²(c)/M, c the item (or group) means over seeds of (n, M) differences; groups of equal size."""
    over_seeds = differences.mean(0)
    if group_index is not None:
        over_seeds = np.bincount(group_index, over_seeds) / np.bincount(group_index)
    return float(over_seeds.var(ddof=1) / len(over_seeds))


def _balanced_accuracy_variance(differences: np.ndarray, positive: np.ndarray) -> float:
    """¼ Σ_class s²(c)/M_class of (n, M) differences in correctness, averaged over seeds."""
    over_seeds = differences.mean(0)
    return sum(float(part.var(ddof=1)) / len(part) for part in (over_seeds[positive], over_seeds[~positive])) / 4


def _check(items: Items) -> None:
    for term, group_of_item in items.indexed:
        _check_classes(term, group_of_item)
        largest = max(float(np.max(np.abs(rows))) for rows in (term.treatment, term.control))
        if term.aggregate == "mean" and largest and not SQUARED[0] < largest < SQUARED[1]:
            raise Undefined(f"item scores as large as {largest:.0e} have squares beyond what a number holds")
    if items.groups < 2:  # all items of a term, by the groups of other terms
        raise Undefined(f"{aggregates(items)} is undefined without one of the items")
    if items.effective < 2:
        so_many = f"so many of the items that they count as {items.effective:.1f} groups"
        raise Undefined(f"one group holds {so_many}, needs at least 2")


def _check_classes(items: ItemScores, group_of_item: np.ndarray) -> None:
    if items.aggregate not in ("auc", "balanced_accuracy", "f1"):
        return
    assert items.gold is not None
    for label in (1,) if items.aggregate == "f1" else (0, 1):
        groups = len(np.unique(group_of_item[items.gold == label]))
        if groups < 2:
            raise Undefined(f"independent items labelled {label}: {groups}, {items.aggregate} needs at least 2")


@dataclass(frozen=True)
class SingleRun:
    """The result of a test of one run per arm, which says nothing about other seeds."""

    test: str
    statistic: float | None
    p: float | None


def steiger(r_a: float, r_b: float, r_ab: float, n: int, *, ranks: bool = False) -> SingleRun:
    """Z test of two dependent correlations that share one variable, e.g. gold. n >= 5 items, |r| < 1.

    r_a, r_b: each model with gold; r_ab: the models with each other. For rank correlations Z is divided by
    sqrt(1.06) (Fieller), an approximation. Source: Steiger 1980, equation 14 with pooled estimates.
    """
    _check_correlations(r_a, r_b, r_ab, n)
    mean = (r_a + r_b) / 2
    psi = r_ab * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - r_ab**2) / 2
    s = psi / (1 - mean**2) ** 2
    z = (np.arctanh(r_a) - np.arctanh(r_b)) * np.sqrt(n - 3) / np.sqrt(2 - 2 * s)
    if ranks:
        z /= np.sqrt(FIELLER)
    name = "Steiger's Z (approximate for ranks)" if ranks else "Steiger's Z"
    return SingleRun(name, float(z), float(2 * special.ndtr(-abs(z))))


def williams(r_a: float, r_b: float, r_ab: float, n: int) -> SingleRun:
    """t test of two dependent correlations that share one variable; better than Steiger's Z below 30 items."""
    _check_correlations(r_a, r_b, r_ab, n)
    determinant = 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab
    mean = (r_a + r_b) / 2
    below = 2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r_ab) ** 3
    t = (r_a - r_b) * np.sqrt((n - 1) * (1 + r_ab) / below)
    return SingleRun("Williams' t", float(t), float(2 * special.stdtr(n - 3, -abs(t))))


def _check_correlations(r_a: float, r_b: float, r_ab: float, n: int) -> None:
    if n < 5 or not max(abs(r_a), abs(r_b), abs(r_ab)) < 1:
        raise Undefined(
            f"dependent correlations {r_a}, {r_b}, {r_ab} of {n} items\n  accepted: |r| < 1, at least 5 items"
        )


def delong(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> SingleRun:
    """Paired test of two ROC AUCs on the same items. labels (N,) 0/1 with at least two of each, scores (N,).

    Source: DeLong et al. 1988; placements from mid-ranks, O(N log N) (Sun & Xu 2014).
    """
    auc, variance = delong_variance(labels, a, b)
    difference = auc[0] - auc[1]
    if variance == 0:
        return SingleRun("DeLong's test", None, 1.0 if difference == 0 else None)
    z = difference / np.sqrt(variance)
    return SingleRun("DeLong's test", float(z), float(2 * special.ndtr(-abs(z))))


def delong_variance(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[tuple[float, float], float]:
    """Both AUCs and the variance of their difference."""
    positive = labels == 1
    m, n = int(positive.sum()), int((~positive).sum())
    if min(m, n) < 2:
        raise Undefined(f"DeLong's test: {m} items labelled 1 and {n} labelled 0, accepted: at least 2 of each")
    placed_1, placed_0 = np.empty((2, m)), np.empty((2, n))
    for k, scores in enumerate((a, b)):
        placed = placements(scores, labels)
        placed_1[k], placed_0[k] = placed[positive], placed[~positive]
    covariance = np.cov(placed_1) / m + np.cov(placed_0) / n
    alone = covariance[0, 0] + covariance[1, 1]
    variance = alone - 2 * covariance[0, 1]
    aucs = float(placed_1[0].mean()), float(placed_1[1].mean())
    return aucs, float(variance) if variance > ROUNDING * alone else 0.0


def mcnemar(only_a: int, only_b: int) -> SingleRun:
    """Paired accuracies from the discordant counts: exact binomial below 25, else chi² with continuity."""
    from scipy import stats  # most of a second to load, which a plan need not wait for

    discordant = only_a + only_b
    if discordant < 25:
        p = float(stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0
        return SingleRun("McNemar's exact test", None, p)
    chi2 = (abs(only_a - only_b) - 1) ** 2 / discordant
    return SingleRun("McNemar's test", chi2, float(special.chdtrc(1, chi2)))


def single_run(items: Items, row: int = 0) -> SingleRun | None:
    """The test for one run of each arm, by default of the first paired seed; None if the metric has none.

    These tests assume independent items, so there is none for items in groups, nor for a sum of metrics.
    """
    if not isinstance(items, ItemScores) or len(set(items.group_ids)) < len(items.item_ids):
        return None
    a, b = items.treatment[row], items.control[row]
    if items.aggregate == "mean" and np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all():
        return mcnemar(int(np.sum(a > b)), int(np.sum(b > a)))
    try:
        if items.aggregate == "auc":
            assert items.gold is not None
            return delong(items.gold, a, b)
        if items.aggregate in ("spearman", "pearson"):
            assert items.gold is not None
            ranks = items.aggregate == "spearman"
            columns = np.stack([a, b, items.gold])
            r = np.corrcoef(list(map(mid_ranks, columns)) if ranks else sized(columns))
            if len(a) < 30:
                return williams(r[0, 2], r[1, 2], r[0, 1], len(a))
            return steiger(r[0, 2], r[1, 2], r[0, 1], len(a), ranks=ranks)
    except Undefined:
        return None  # identical or constant predictions: no test exists, and none is reported
    return None
