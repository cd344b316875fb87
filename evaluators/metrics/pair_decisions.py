"""Figures of labelled pairs: does cosine rank the positive ones above the others, does one threshold part them?"""

from __future__ import annotations

import numpy as np

from evaluators.metrics.concept_differentiation import best_threshold, is_below
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Items, Score


def average_precision(scores: np.ndarray, labels: np.ndarray) -> float:
    """Mean over the positives of the precision at their rank; equal scores are taken together. (N,), (N,) 0/1.

    nan without positives.
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(labels[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of each run of equal scores
    recalls = np.diff(hits[last], prepend=0.0)
    return float((recalls * hits[last] / (last + 1)).sum() / hits[-1]) if hits[-1] else float("nan")


def ranking_scores(name: str, items: Items, cosines: np.ndarray, labels: np.ndarray) -> list[Score]:
    """ROC-AUC with its items, average precision without. cosines, labels (N,), 1 for a positive pair."""
    return [
        score_of_items(f"{name}/auc", "auc", items.ids, items.groups, cosines, labels),
        Score(metric=f"{name}/ap", value=average_precision(cosines, labels)),
    ]


def decision_scores(
    name: str, items: Items, cosines: np.ndarray, labels: np.ndarray, known: tuple[np.ndarray, np.ndarray]
) -> list[Score]:
    """Accuracy of the threshold on distance that is right most often on other pairs. cosines, labels (N,).

    known: cosines and labels of those pairs. The threshold is recorded: no value of it is better than another.
    """
    threshold = best_threshold(1 - known[0], known[1] == 1)
    right = is_below(1 - cosines, threshold) == (labels == 1)
    return [
        score_of_items(f"{name}/accuracy", "mean", items.ids, items.groups, right),
        Score(metric=f"{name}/threshold", value=threshold),
    ]
