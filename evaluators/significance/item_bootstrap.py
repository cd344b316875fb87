"""Resampling of test items: the item variance of a delta, and the two-level seed x item interval.

A resample is a vector of counts, one per item. All seeds and both arms share it, because they share the
items: counts are drawn once, and every metric is computed exactly from them (counted_metrics.py).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from evaluators.metrics.counted_metrics import METRICS, Metric
from evaluators.significance.level import ALPHA
from evaluators.significance.paired_items import BY_CLASS, Items, ItemScores, ItemSum

RESAMPLES = 2_000  # for a variance
INTERVAL_RESAMPLES = 10_000  # for percentiles
UNDEFINED = 0.05  # with a larger share of undefined resamples the jackknife is used
CHUNK = 1 << 19  # counts held at a time: 2 MB, near the caches' size; larger arrays are slower
SHARED_CHUNKS = 4  # with fewer chunks threads cost as much time as they save
BOTH = 3  # the kind of a group that holds both classes
ENOUGH_GROUPS = 10  # of a kind: of fewer, resamples vary too little
DRAWN = 1 << 15  # groups drawn at a time: 256 kB stay in the caches; with 2 MB page faults double the time


class Undefined(ValueError):
    """The metric is undefined on these items, or on too many subsets of them to estimate its item variance."""


def jackknife_item_variance(items: Items) -> float:
    """Stratified delete-one-group jackknife variance of the seed-averaged delta."""
    group_of_item = items.group_index
    deltas, chunk = deltas_of(items), _chunk(items)
    total = 0.0
    for stratum in strata_of(items):
        values = np.empty(len(stratum))
        for start in range(0, len(stratum), chunk):
            left_out = stratum[start : start + chunk]
            kept = (group_of_item[:, None] != left_out).astype(np.float32)
            values[start : start + chunk] = deltas(kept).mean(0)
        if not np.isfinite(values).all():
            raise Undefined(f"{aggregates(items)} is undefined without one of the items")
        total += (len(stratum) - 1) / len(stratum) * float(np.sum((values - values.mean()) ** 2))
    return total


def two_level_of(deltas: np.ndarray, rng: np.random.Generator, *, seed_draws: int = 1) -> tuple[float, float]:
    """Percentile interval over resamples of seeds and items: printed beside a verdict, never deciding it.

    With few seeds it is too narrow when items add little noise (false rejections 24.5 % at 3 seeds).
    """
    low, high = np.quantile(two_level_means(deltas, rng, seed_draws), [ALPHA / 2, 1 - ALPHA / 2])
    return float(low), float(high)


def two_level_means(deltas: np.ndarray, rng: np.random.Generator, seed_draws: int) -> np.ndarray:
    """Mean deltas under B resamples of items, each with so many draws of seeds. (n, B) -> (seed_draws B,)."""
    n, resamples = deltas.shape
    counts = rng.multinomial(n, np.full(n, 1 / n), size=(seed_draws, resamples))
    return np.einsum("kbn,nb->kb", counts, deltas).ravel() / n


def resampled_deltas(
    items: Items, rng: np.random.Generator, resamples: int, workers: int | None = None
) -> np.ndarray | None:
    """Metric of treatment minus control for every seed and resample (n, B), larger taken as it comes.

    Undefined resamples are drawn again; None when they are more than 5 %. The result depends on the
    generator, not on the number of workers (threads; by default the cores of this process).
    """
    strata, deltas = strata_of(items), deltas_of(items)
    chunk = _chunk(items)
    kept: list[np.ndarray] = []
    missing, undefined = resamples, 0
    with ThreadPoolExecutor(workers or _cores()) as pool:
        while missing:
            sizes = [min(chunk, missing - start) for start in range(0, missing, chunk)]
            keys = [int(key) for key in rng.integers(0, 2**63, size=len(sizes))]

            def one(key: int, size: int) -> np.ndarray:
                chunk_rng = np.random.Generator(np.random.Philox(key=key))
                return deltas(drawn_counts(strata, items.group_index, size, chunk_rng))

            each = pool.map if len(sizes) >= SHARED_CHUNKS else map
            drawn = np.concatenate(list(each(one, keys, sizes)), axis=1)
            good = np.isfinite(drawn).all(0)
            undefined += int(np.sum(~good))
            if undefined > UNDEFINED * resamples:
                return None
            kept.append(drawn[:, good])
            missing -= int(good.sum())
    return np.concatenate(kept, axis=1)


def _chunk(items: Items) -> int:
    return min(1_024, max(64, CHUNK // len(items.group_index)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def aggregates(items: Items) -> str:
    """The aggregates of the items' terms, in words."""
    return " and ".join(dict.fromkeys(term.aggregate for _, term in items.terms))


def strata_of(items: Items) -> list[np.ndarray]:
    """The strata within which groups are drawn: the groups of one figure, or of several figures that share groups.

    For AUC and balanced accuracy, groups with only 0, only 1 and both labels are strata of their own, so that
    class sizes are kept, unless one of these has few groups, or they also belong to figures with other items.
    """
    if isinstance(items, ItemScores):
        return _by_class(items, items.group_index, items.groups)
    strata = []
    for linked in _linked(items):
        first = items.terms[linked[0]][1]
        groups = np.unique(np.concatenate([items.group_index[items.places[k]] for k in linked]))
        if all(items.terms[k][1].item_ids == first.item_ids for k in linked):
            names = items.group_index[items.places[linked[0]]]
            number = np.searchsorted(groups, names)
            strata += [groups[part] for part in _by_class(first, number, len(groups))]
        else:
            strata.append(groups)
    return strata


def _linked(items: ItemSum) -> list[list[int]]:
    """The indices of terms, connected by shared groups, directly or through other terms."""
    sets: list[tuple[set[int], list[int]]] = []
    for k, place in enumerate(items.places):
        groups, terms = set(items.group_index[place].tolist()), [k]
        for one in [other for other in sets if not groups.isdisjoint(other[0])]:
            sets.remove(one)
            groups, terms = groups | one[0], one[1] + terms
        sets.append((groups, terms))
    return [terms for _, terms in sets]


def _by_class(items: ItemScores, group_of_item: np.ndarray, groups: int) -> list[np.ndarray]:
    """The groups split by the classes that they hold, if the figure needs both. group_of_item (M,) from 0.

    Not where some hold both and a kind has few groups, as a single one would never vary.
    """
    if items.aggregate not in BY_CLASS:
        return [np.arange(groups)]
    assert items.gold is not None
    has = [np.bincount(group_of_item, items.gold == label) > 0 for label in (0, 1)]
    kind = has[0] + 2 * has[1]
    kinds = [np.flatnonzero(kind == value) for value in np.unique(kind)]
    return [np.arange(groups)] if BOTH in kind and min(map(len, kinds)) < ENOUGH_GROUPS else kinds


def drawn_counts(
    strata: list[np.ndarray], group_of_item: np.ndarray, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """The counts of items in resamples, (M, B) float32; groups are drawn with replacement within each stratum."""
    counts = np.empty((sum(map(len, strata)), resamples), np.float32)  # of groups, by their numbers
    for stratum in strata:
        size = len(stratum)
        few = max(1, DRAWN // size)
        for start in range(0, resamples, few):
            drawn = rng.integers(0, size, size=(min(few, resamples - start), size))
            drawn += np.arange(len(drawn))[:, None] * size
            per_resample = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            counts[stratum, start : start + few] = per_resample.T
    own = np.array_equal(group_of_item, np.arange(len(counts)))  # each item is a group
    return counts if own else counts.take(group_of_item, axis=0)


def deltas_of(items: Items) -> Metric:
    """The function from counts (M, B) to the delta of every seed (n, B), NaN if undefined.

    Everything that does not depend on the counts, such as sorting scores, is done once, here. An arm that is equal
    at several seeds (a frozen encoder) is computed once.
    """
    if isinstance(items, ItemScores):
        return _deltas_of_one(items)
    of_terms = [(weight, _deltas_of_one(term)) for weight, term in items.terms]

    def added(counts: np.ndarray) -> np.ndarray:
        parts = zip(of_terms, items.places, strict=True)
        return np.sum([weight * deltas(counts[place]) for (weight, deltas), place in parts], axis=0)

    return added


def _deltas_of_one(items: ItemScores) -> Metric:
    n = len(items.treatment)
    rows, place = distinct_rows(np.concatenate([items.treatment, items.control]))
    metric = METRICS[items.aggregate](rows, items.gold)

    def deltas(counts: np.ndarray) -> np.ndarray:
        values = metric(counts)[place]
        return values[:n] - values[n:]

    return deltas


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows, ascending, and each row's index among them. (R, M) of finite numbers -> (U, M), (R,).

    The same as `np.unique` with axis 0, in a quarter of the time if rows are few and long.
    """
    rows = rows + 0.0  # -0 is 0
    first: dict[bytes, int] = {}
    of = [first.setdefault(row.tobytes(), k) for k, row in enumerate(rows)]
    starts = {rows[k, :1].tobytes() for k in first.values()}
    telling = 1 if len(starts) == len(first) else None  # all of a row are written out where the first ones tie
    order = sorted(first.values(), key=lambda k: rows[k, :telling].tolist())
    number = {k: place for place, k in enumerate(order)}
    return rows[order], np.array([number[k] for k in of])
