"""Every metric as a function of resampling counts, which say how often each item is drawn.

Counts (M, B) hold B resamples. Means and moments are one matrix product. Ranks need no new sorting: in the order
of the scores, mid-ranks are running sums of the counts, so that Spearman and AUC are bilinear forms of two count
vectors. Each function below sorts once and returns a function from counts to the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from evaluators.metrics.scores import Aggregate

EXACT_ITEMS = 20_000  # up to so many, 16 products of a count below 26 and a sum of counts are exact in float32
SHORT = 2**16 - 1  # the largest unsigned number of 16 bits
BLOCK = 16  # items summed by one small matrix product; fastest of 8, 16, 32, 64

Metric = Callable[[np.ndarray], np.ndarray]  # counts (M, B) -> one value per row and resample (R, B)


def _mean(rows: np.ndarray, gold: np.ndarray | None) -> Metric:
    """Mean item score. rows (R, M); gold is ignored."""

    def under(counts: np.ndarray) -> np.ndarray:
        weights = counts.astype(np.float64)
        return rows @ weights / weights.sum(0)

    return under


def _sd(rows: np.ndarray, gold: np.ndarray | None) -> Metric:
    """Standard deviation of item scores, with N - 1 in the denominator. rows (R, M); gold is ignored."""
    x = rows - rows.mean(1, keepdims=True)  # centred, so that moments do not cancel

    def under(counts: np.ndarray) -> np.ndarray:
        weights = counts.astype(np.float64)
        size = weights.sum(0)
        with np.errstate(invalid="ignore"):
            variance = (x**2 @ weights - (x @ weights) ** 2 / size) / (size - 1)
        return np.sqrt(np.maximum(variance, 0.0))  # rounding may leave a constant resample below nought

    return under


def _pearson(rows: np.ndarray, gold: np.ndarray) -> Metric:
    x = sized(rows - rows.mean(1, keepdims=True))  # centred, so that moments do not cancel
    y = sized(gold - gold.mean())

    def under(counts: np.ndarray) -> np.ndarray:
        weights = counts.astype(np.float64)
        size = weights.sum(0)
        mean_x, mean_y = x @ weights / size, y @ weights / size
        var_x = _positive(x**2 @ weights / size - mean_x**2, (x**2).max(1, keepdims=True))
        var_y = _positive(y**2 @ weights / size - mean_y**2, (y**2).max())
        return ((x * y) @ weights / size - mean_x * mean_y) / np.sqrt(var_x * var_y)

    return under


def sized(values: np.ndarray) -> np.ndarray:
    """Scale each row by a power of two to near 1: no digit changes, and its squares do not overflow."""
    return np.ldexp(values, -np.frexp(np.abs(values).max(-1, keepdims=True))[1])


def _positive(variance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Replace variances that are only rounding error by NaN: there the resample is constant."""
    return np.where(variance > 1e-13 * scale, variance, np.nan)


def _balanced_accuracy(rows: np.ndarray, gold: np.ndarray) -> Metric:
    positive = gold == 1
    hit_1, hit_0 = (positive & (rows > 0.5)).astype(float), (~positive & (rows <= 0.5)).astype(float)

    def under(counts: np.ndarray) -> np.ndarray:
        weights = counts.astype(np.float64)
        ones, zeros = weights[positive].sum(0), weights[~positive].sum(0)
        with np.errstate(invalid="ignore"):
            return (hit_1 @ weights / ones + hit_0 @ weights / zeros) / 2

    return under


def _f1(rows: np.ndarray, gold: np.ndarray) -> Metric:
    positive, decided = gold == 1, (rows > 0.5).astype(float)

    def under(counts: np.ndarray) -> np.ndarray:
        weights = counts.astype(np.float64)
        hits, claimed = (decided * positive) @ weights, decided @ weights
        with np.errstate(invalid="ignore"):
            return 2 * hits / (claimed + weights[positive].sum(0))

    return under


def _auc(rows: np.ndarray, gold: np.ndarray) -> Metric:
    """Share of (0, 1) pairs in the right order, ties counting half.

    Only items labelled 0 ("zeros") are sorted: running sums of their counts tell how many lie below each item
    labelled 1 ("ones"). All sums are exact.
    """
    positive, negative = np.flatnonzero(gold == 1), np.flatnonzero(gold != 1)
    labels = np.asarray(gold, np.float64).tobytes()
    sorted_zeros = [_sorted_zeros(np.asarray(row, np.float64).tobytes(), labels) for row in rows]

    def under(counts: np.ndarray) -> np.ndarray:
        above_all, below_all = (counts[labelled].sum(0, dtype=np.float64) for labelled in (positive, negative))
        pairs = above_all * below_all
        kind, together = _narrowest(float(counts.max(initial=0)), float(below_all.max(initial=0)), len(gold))
        padded = np.zeros((len(counts) + 1, counts.shape[1]), kind if kind is np.uint16 else counts.dtype)
        padded[:-1] = counts
        ones = padded.take(positive, axis=0)
        sums, smaller = sorted_zeros[0][0].room(padded), np.empty_like(ones)
        found = np.empty((len(rows), counts.shape[1]))
        for (zeros, sides), value in zip(sorted_zeros, found, strict=True):
            before = zeros.before(padded, sums)
            value[:] = 0
            for place in sides:
                np.take(before, place, axis=0, out=smaller, mode="clip")
                value += _products(smaller, ones, kind, together)
            value /= len(sides)
        with np.errstate(invalid="ignore"):
            return found / pairs

    return under


@lru_cache(maxsize=64)  # many claims are about the runs of one control
def _sorted_zeros(scores: bytes, labels: bytes) -> tuple[_Running, list[np.ndarray]]:
    """The running sums of the zeros in the order of their scores, and their places of the sum below each one.

    scores, labels: the bytes of (M,) float64.
    """
    row, positive = np.frombuffer(scores), np.frombuffer(labels) == 1
    negative = np.flatnonzero(~positive)
    order = negative[np.argsort(row[negative])]  # of equal zeros in any order: they count alike
    zeros = _Running(order, len(row))
    return zeros, [zeros.place(below) for below in _below_ones(row[order], row[positive])]


def _below_ones(zeros: np.ndarray, ones: np.ndarray) -> list[np.ndarray]:
    """How many of the sorted zeros lie below each one; if any are equal, also how many lie at or below it."""
    ascending = np.argsort(ones)  # searching sorted values is faster
    sought = ones[ascending]
    sides = [np.searchsorted(zeros, sought)]
    within = sides[0] < len(zeros)
    if (zeros[sides[0][within]] == sought[within]).any():
        sides.append(np.searchsorted(zeros, sought, "right"))
    found = np.empty((len(sides), len(ones)), int)
    found[:, ascending] = sides
    return list(found)


def _narrowest(most: float, total: float, items: int) -> tuple[type[np.number], int]:
    """The narrowest number type in which products of a count up to `most` and a sum up to `total` are exact,
    and how many such products can be added up in it. Memory bandwidth limits speed, so narrower is faster."""
    fitting = int(SHORT // max(1.0, most * total)) if total <= SHORT else 0
    if fitting > 1:
        return np.uint16, min(fitting, BLOCK)
    return (np.float32 if items <= EXACT_ITEMS else np.float64), BLOCK


class _Running:
    """Running sums of rows in a given order. Rows are arranged in blocks of 16, with the first rows of all blocks
    stored first, so that one long addition adds a row to every block's sum at once."""

    def __init__(self, order: np.ndarray, filler: int) -> None:
        """order (N,): indices of rows. filler: the index of a row of zeros."""
        self.blocks = len(order) // BLOCK + 1  # N + 1 places, as the sum of all N rows needs one too
        filled = np.append(order, np.full(self.blocks * BLOCK - len(order), filler))
        self._across = filled.reshape(self.blocks, BLOCK).T.ravel()

    def place(self, count: np.ndarray) -> np.ndarray:
        """The place in the result of `before` of the sum of the first `count` rows."""
        return count % BLOCK * self.blocks + count // BLOCK

    def room(self, u: np.ndarray) -> np.ndarray:
        """An array for `before` to write into; orders of equal length can share it."""
        return np.empty((BLOCK + 1, self.blocks, u.shape[1]), u.dtype)

    def before(self, u: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Sums of the first 0 to N rows, each at its `place`. (M, B) -> (16 * blocks, B), exact."""
        sums[0] = 0
        np.take(u, self._across, axis=0, out=sums[1:].reshape(-1, u.shape[1]), mode="clip")  # else it is buffered
        for step in range(1, BLOCK):
            sums[step + 1] += sums[step]
        sums[:BLOCK] += np.cumsum(sums[BLOCK], axis=0, dtype=u.dtype) - sums[BLOCK]
        return sums[:BLOCK].reshape(-1, u.shape[1])


def _products(u: np.ndarray, v: np.ndarray, kind: type[np.number], together: int) -> np.ndarray:
    """Σ u_k v_k. (K, B) twice -> (B,) float64, exact where so many products together are exact in this kind."""
    whole = len(u) - len(u) % together
    blocks = [rows[:whole].reshape(-1, together, rows.shape[1]) for rows in (u, v)]
    inside = np.einsum("klb,klb->kb", *blocks, dtype=kind)
    return inside.sum(0, dtype=np.float64) + np.einsum("kb,kb->b", u[whole:], v[whole:], dtype=np.float64)


def _spearman(rows: np.ndarray, gold: np.ndarray) -> Metric:
    """Correlation of mid-ranks. A centred mid-rank is (items below) + (items equal)/2 - (items)/2, and the sum of
    its squares is (N³ - Σ t³)/12 over the sizes t of the groups of equal items."""
    orders = [_Order(row) for row in rows]
    gold_order = _Order(gold)

    def under(counts: np.ndarray) -> np.ndarray:
        padded = _with_zero_row(counts)
        size = padded.sum(0, dtype=np.float64)
        untied = (padded * padded * padded).sum(0, dtype=np.float64)

        def squares(order: _Order) -> np.ndarray:
            cubes = (order.tied(padded).astype(np.float64) ** 3).sum(0) if order.has_ties else untied
            return (size**3 - cubes) / 12

        centred = _running(gold_order.tied(padded)) - size.astype(np.float32) / 2  # half-integers: exact
        weighted = _with_zero_row(counts * centred.take(gold_order.place, axis=0))
        of_gold = squares(gold_order)
        values = np.empty((len(rows), counts.shape[1]))
        for order, value in zip(orders, values, strict=True):
            product = of_gold * squares(order)
            value[:] = _below(padded, weighted, order) / np.sqrt(np.where(product > 0, product, np.nan))
        return values

    return under


class _Order:
    """The sorted order of (M,) values and its runs of equal ones."""

    def __init__(self, values: np.ndarray) -> None:
        self.order = np.argsort(values, kind="stable")
        first = np.append(True, np.diff(values[self.order]) != 0)
        self.starts = np.flatnonzero(first)
        self.place = np.empty(len(values), int)  # (M,) which run each value belongs to
        self.place[self.order] = np.cumsum(first) - 1
        self.has_ties = len(self.starts) < len(values)
        self._filled = np.append(self.order, np.full(-len(values) % BLOCK, len(values)))

    def tied(self, u: np.ndarray) -> np.ndarray:
        """Rows of u added up per run, runs ascending. (M+1, B), last row 0 -> (U, B), filled up with rows of 0."""
        if not self.has_ties:
            return u.take(self._filled, axis=0)
        sums = np.add.reduceat(u.take(self.order, axis=0), self.starts, axis=0)
        return np.concatenate([sums, np.zeros((-len(sums) % BLOCK, u.shape[1]), u.dtype)])


def _below(u: np.ndarray, v: np.ndarray, order: _Order) -> np.ndarray:
    """Σ u_k v_j over pairs with x_k < x_j, pairs with x_k = x_j counting half. (M+1, B) twice -> (B,) float64.

    Inside blocks of 16 rows one triangular product in float32, where counts and ranks are exact; products
    between blocks in float64.
    """
    u, v = _blocks(order.tied(u)), _blocks(order.tied(v))  # (K, 16, B)
    sums = np.matmul(TRIANGLE, u)  # (K, 17, B)
    inside = np.einsum("klb,klb->kb", sums[:, :BLOCK], v).sum(0, dtype=np.float64)
    after = np.matmul(TRIANGLE[BLOCK:], v)[:, 0].astype(np.float64)  # (K, B)
    return inside + np.einsum("kb,kb->b", _before(sums[:, BLOCK]).astype(np.float64), after)


def _running(u: np.ndarray) -> np.ndarray:
    """Sum of the rows before, plus half of the own row. (U, B) -> (U, B)."""
    sums = np.matmul(TRIANGLE, _blocks(u))
    return (sums[:, :BLOCK] + _before(sums[:, BLOCK])[:, None]).reshape(u.shape)


def _before(sums: np.ndarray) -> np.ndarray:
    """Total of the rows before each. (K, B) -> (K, B), exact: counts of fewer than 2^23 items."""
    if len(sums) <= BLOCK:
        return np.cumsum(sums, axis=0) - sums
    fill = np.zeros((-len(sums) % BLOCK, sums.shape[1]), sums.dtype)
    inside = np.matmul(BEFORE, _blocks(np.concatenate([sums, fill])))
    return (inside[:, :BLOCK] + _before(inside[:, BLOCK])[:, None]).reshape(-1, sums.shape[1])[: len(sums)]


def _blocks(u: np.ndarray) -> np.ndarray:
    return u.reshape(-1, BLOCK, u.shape[1])


def _with_zero_row(u: np.ndarray) -> np.ndarray:
    return np.concatenate([u, np.zeros((1, u.shape[1]), u.dtype)])


# Sums of the rows before (plus half of the own row); the last row sums the block.
BEFORE = np.vstack([np.tri(BLOCK, k=-1), np.ones((1, BLOCK))]).astype(np.float32)
TRIANGLE = BEFORE + np.vstack([np.eye(BLOCK) / 2, np.zeros((1, BLOCK))]).astype(np.float32)
METRICS: dict[Aggregate, Callable[..., Metric]] = {
    "mean": _mean,
    "auc": _auc,
    "spearman": _spearman,
    "pearson": _pearson,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _f1,
    "sd": _sd,
}
