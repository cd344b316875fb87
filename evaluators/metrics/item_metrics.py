"""Metrics from item-level values, by which every metric with items can be recomputed from the ledger."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import get_args

import numpy as np

from corpora.sources.texts import is_text
from evaluators.metrics.counted_metrics import sized
from evaluators.metrics.scores import Aggregate, Score


def spearman(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Rank correlation in [-1, 1]. (N,), (N,) -> scalar; nan when either side is constant."""
    _check(gold, predicted)
    return pearson(mid_ranks(gold), mid_ranks(predicted))


def pearson(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Linear correlation in [-1, 1]. (N,), (N,) -> scalar; nan when either side is constant."""
    _check(gold, predicted)
    if len(gold) == 0 or np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return float("nan")
    a, b = (sized(_centred(_centred(column))) for column in (gold, predicted))
    cosine = (a / np.linalg.norm(a)) @ (b / np.linalg.norm(b))
    return float(np.clip(cosine, -1.0, 1.0))


def _centred(column: np.ndarray) -> np.ndarray:
    """The column minus its mean; applied twice it also removes the rounding error of the first mean."""
    return column - np.mean(column)


def roc_auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Probability that a random item labelled 1 scores above a random item labelled 0, ties counting ½.

    The Mann-Whitney statistic over the number of pairs. (N,), (N,) 0/1 -> scalar; nan when a class is empty.
    """
    _check(scores, labels)
    positive = _is_positive(labels)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if ones == 0 or zeros == 0:
        return float("nan")
    above = mid_ranks(scores)[positive].sum() - ones * (ones + 1) / 2
    return float(above / (ones * zeros))


def placements(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each item the share of items of the other label to which it is correctly ordered, ties counting ½.

    Its mean over the items of either label is `roc_auc`. (N,), (N,) 0/1, both labels -> (N,).
    """
    positive, ranks = _is_positive(labels), mid_ranks(scores)
    placed = np.empty(len(scores))
    placed[positive] = (ranks[positive] - mid_ranks(scores[positive])) / (~positive).sum()
    placed[~positive] = 1 - (ranks[~positive] - mid_ranks(scores[~positive])) / positive.sum()
    return placed


def balanced_accuracy(decisions: np.ndarray, labels: np.ndarray) -> float:
    """Mean of the recalls of both classes; an item is decided 1 when its value exceeds ½.

    (N,), (N,) 0/1 -> scalar; nan when a class is empty.
    """
    _check(decisions, labels)
    positive, decided = _is_positive(labels), decisions > 0.5
    if positive.all() or not positive.any():
        return float("nan")
    return float((decided[positive].mean() + (~decided[~positive]).mean()) / 2)


def f1(decisions: np.ndarray, labels: np.ndarray) -> float:
    """2·tp / (2·tp + fp + fn) of label 1; an item is decided 1 when its value exceeds ½.

    (N,), (N,) 0/1 -> scalar; nan when there is no 1 on either side.
    """
    _check(decisions, labels)
    positive, decided = _is_positive(labels), decisions > 0.5
    total = int(positive.sum() + decided.sum())  # 2·tp + fp + fn
    return float(2 * (positive & decided).sum() / total) if total else float("nan")


def hits(ranks: np.ndarray, k: int) -> np.ndarray:
    """1.0 where the rank is at most k; the mean is Recall@k. (Q,) ranks from 1 -> (Q,)."""
    return (ranks <= k).astype(np.float64)


def reciprocal(ranks: np.ndarray) -> np.ndarray:
    """1 / rank, uncut; the mean is the mean reciprocal rank. (Q,) ranks from 1 -> (Q,)."""
    return 1.0 / ranks.astype(np.float64)


def mid_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, equal values sharing the mean of their places. (N,) -> (N,) float64."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


AGAINST_GOLD: Mapping[Aggregate, Callable[[np.ndarray, np.ndarray], float]] = {
    "auc": roc_auc,
    "spearman": lambda values, gold: spearman(gold, values),
    "pearson": lambda values, gold: pearson(gold, values),
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
}  # kind -> the metric of values and gold


def aggregate(kind: Aggregate, values: np.ndarray, gold: np.ndarray | None = None) -> float:
    """The metric of these items, as `Score` defines it. values, gold (N,) -> scalar.

    Raises ValueError for an unknown kind, for no items, and for missing gold unless the kind is "mean" or "sd".
    """
    if len(values) == 0:
        raise ValueError(f"no items to take the {kind} of")
    if kind == "mean":
        return float(np.mean(values))
    if kind == "sd":
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    if gold is None:
        raise ValueError(f"{kind} compares values with gold, and these items have no gold")
    if kind not in AGAINST_GOLD:
        raise ValueError(f"no aggregate {kind!r}: {', '.join(get_args(Aggregate))}")
    return AGAINST_GOLD[kind](values, gold)


def score_of_items(
    metric: str,
    kind: Aggregate,
    item_ids: Sequence[str],
    group_ids: Sequence[str],
    values: np.ndarray,
    gold: np.ndarray | None = None,
    *,
    larger_is_better: bool = True,
) -> Score:
    """A `Score` whose value is by construction the aggregate of its items.

    values, gold (N,) are kept in float64, the precision in which they are stored.
    """
    values = np.asarray(values, np.float64)
    gold = None if gold is None else np.asarray(gold, np.float64)
    return Score(
        metric=metric,
        value=aggregate(kind, values, gold),
        larger_is_better=larger_is_better,
        aggregate=kind,
        item_ids=item_ids,
        group_ids=group_ids,
        values=values,
        gold=gold,
    )


def check_items(score: Score) -> None:
    """Raise ValueError, naming the metric, unless a score has no items, or as many values as distinct item names,
    and its value is their aggregate."""
    if isinstance(score.value, str) or not hasattr(score.value, "__float__"):
        raise ValueError(f"{score.metric} is {score.value!r}\n  accepted: a number")
    for what in ("item_ids", "group_ids", "taken_for"):
        _check_names(score, what)
    if score.values is None and score.aggregate is None:
        return
    if score.values is None or score.aggregate is None:  # a ledger with such an entry would be called damaged
        has, lacks = ("aggregate", "values") if score.values is None else ("values", "aggregate")
        raise ValueError(f"{score.metric}: {has} without {lacks}\n  accepted: both, or neither")
    count = len(score.values)
    gold = count if score.gold is None else len(score.gold)
    optional = {_count(score.group_ids), _count(score.taken_for)} - {0}
    if not count == _count(score.item_ids) == gold or optional - {count}:
        raise ValueError(
            f"{score.metric}: values, item_ids, group_ids, gold and taken_for are of different lengths"
        )
    if (twice := repeated(score.item_ids)) is not None:
        raise ValueError(f"{score.metric}: the item {twice!r} twice\n  accepted: each item once for a metric")
    value = aggregate(score.aggregate, score.values, score.gold)
    if not makes_up(value, score.value):
        raise ValueError(
            f"{score.metric} is {score.value}, but the {score.aggregate} of its items is {value}"
            "\n  accepted: what score_of_items makes, or a score without items"
        )


def _check_names(score: Score, what: str) -> None:
    """Raise ValueError for names that a file of items cannot hold: they would fail once the run is trained."""
    names = getattr(score, what)
    if what == "item_ids" and hasattr(names, "tolist"):  # the file takes an array and a table's column, too
        names = names.tolist()
    if not isinstance(names, Sequence | None):
        raise ValueError(f"{score.metric}: {what} is a {type(names).__name__}\n  accepted: a list of texts")
    names = names or ()
    numbers = not _count(score.taken_for) and all(isinstance(name, Real) for name in names)  # are written as texts
    if not numbers and not all(map(is_text, names)):
        odd = next(name for name in names if not is_text(name))
        raise ValueError(f"{score.metric}: {what} holds {odd!r}\n  accepted: texts alone")


def _count(names: Sequence[str] | None) -> int:
    return 0 if names is None else len(names)


def makes_up(value: float, recorded: float, *, size: float | None = None) -> bool:
    """True if the aggregate of items equals the recorded figure up to rounding, or if both are nan.

    size: of the figures that were rounded, where value and recorded are sums of their differences.
    """
    undefined = math.isnan(value) and math.isnan(recorded)
    return undefined or bool(abs(value - recorded) <= 1e-5 * max(1.0, abs(recorded) if size is None else size))


def repeated(names: Sequence[str]) -> str | None:
    """The most frequent name if any occurs more than once, else None."""
    if len(set(names)) == len(names):
        return None
    return Counter(names).most_common(1)[0][0]


def _is_positive(labels: np.ndarray) -> np.ndarray:
    """Labels as booleans. Raises ValueError for a label that is neither 0 nor 1."""
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("labels are 0 or 1")
    return labels == 1


def _check(left: np.ndarray, right: np.ndarray) -> None:
    """Raise ValueError unless both are one-dimensional, equally long and finite."""
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(f"two columns of one length, not {left.shape} and {right.shape}")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError("a column holds a value that is not finite")
