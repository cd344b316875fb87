"""Between what values a metric lies, told by its name: a margin as wide as that cannot fail."""

from __future__ import annotations

import re

# the words of a figure's name that say what it is; of several, the first row that has one of them
RANGES: tuple[tuple[frozenset[str], tuple[float, float]], ...] = (
    (frozenset({"gap", "gain", "spread"}), (-2.0, 2.0)),  # of two distances or two correlations
    (frozenset({"dist"}), (0.0, 2.0)),  # cosine distances
    (
        frozenset({"spearman", "pearson", "uncentred", "partial", "lin", "wup", "silhouette", "anisotropy"}),
        (-1.0, 1.0),
    ),
    (
        frozenset(
            {"recall", "mrr", "auc", "acc", "accuracy", "ap", "map", "ndcg", "ba", "f1", "top1", "top3", "top10"}
        ),
        (0.0, 1.0),
    ),
)


def range_of(metric: str) -> tuple[float, float] | None:
    """Least and greatest value of a metric such as `t2d/recall@10`; None where its name does not tell."""
    words = set(re.split(r"[_@]", metric.rsplit("/", 1)[-1]))
    return next((limits for named, limits in RANGES if words & named), None)
