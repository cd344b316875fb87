"""Between what values a metric lies, told by its name: a margin as wide as that cannot fail."""

from __future__ import annotations

import re
from collections.abc import Sequence

Ranges = Sequence[tuple[frozenset[str], tuple[float, float]]]

# what figures are called by everybody, who all mean the same by it
OF_THE_FIELD: Ranges = (
    (frozenset({"spearman", "pearson"}), (-1.0, 1.0)),
    (frozenset({"recall", "mrr", "auc", "acc", "accuracy", "ap", "map", "ndcg", "f1"}), (0.0, 1.0)),
)
# which of them it is; any other word beside one makes it another figure, as in `accuracy_gap`
ROWS = {"dev", "eval", "test", "train", "val"}
KINDS = {"at", "balanced", "cos", "cosine", "dot", "macro", "mean", "micro", "weighted"} | ROWS
# the words of our own tasks' figures that say what they are; of several, the first row that has one of them
OURS: Ranges = (
    (frozenset({"gap", "gain", "spread"}), (-2.0, 2.0)),  # of two distances or two correlations
    (frozenset({"dist"}), (0.0, 2.0)),  # cosine distances
    (frozenset({"uncentred", "partial", "lin", "wup", "silhouette", "anisotropy"}), (-1.0, 1.0)),
    (frozenset({"ba", "top1", "top3", "top10"}), (0.0, 1.0)),
    *OF_THE_FIELD,
)


def range_of(metric: str) -> tuple[float, float] | None:
    """Least and greatest value of a metric such as `scores/accuracy`; None where its name does not tell."""
    words = _words(metric)
    known = any(words <= named | KINDS for named, _ in OF_THE_FIELD)
    return _first(OF_THE_FIELD, words) if known else None


def range_of_ours(metric: str) -> tuple[float, float] | None:
    """As `range_of`, of a figure of a task of ours, such as `spcd/dist_spread`."""
    return _first(OURS, _words(metric))


def _words(metric: str) -> set[str]:
    """Those of its last name, without cut-offs."""
    return {word for word in re.split(r"[_@]", metric.rsplit("/", 1)[-1]) if not word.isdecimal()}


def _first(ranges: Ranges, words: set[str]) -> tuple[float, float] | None:
    return next((limits for named, limits in ranges if words & named), None)
