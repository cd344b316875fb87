"""How similar are two words here, and how does that change with the context? CoSimLex's two subtasks.

Source: CALE, section 5.3; Armendariz et al. 2020, SemEval task 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import ROUNDING, check_finite


def metric_names(place: str) -> dict[str, bool]:
    """What `context_scores` yields; the first decides."""
    return {f"{place}/{figure}": True for figure in ("st1_pearson", "st1_uncentred", "st2_spearman")}


def uncentred(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Σ gold·predicted / sqrt(Σ gold² · Σ predicted²). (N,), (N,) -> scalar; nan when either side is all zeros."""
    scale = np.linalg.norm(gold) * np.linalg.norm(predicted)
    return float(gold @ predicted / scale) if scale else float("nan")


def context_scores(place: str, pairs: Sequence[str], gold: np.ndarray, predicted: np.ndarray) -> list[Score]:
    """Pearson of the changes between contexts, and Spearman over all single contexts. gold, predicted (N, 2).

    The uncentred correlation is how the shared task itself scored changes; it has no items. Both contexts of a
    pair are resampled together: they share the two words. What is the same for all (where only the lemma counts)
    has no correlation, and no score.
    """
    check_finite(f"{place}: gold", gold)
    check_finite(f"{place}: predicted", predicted)
    change, said = gold[:, 1] - gold[:, 0], predicted[:, 1] - predicted[:, 0]
    contexts = [f"{pair}, context {number}" for pair in pairs for number in (1, 2)]
    both = np.repeat(pairs, 2).tolist()
    pearson, plain, spearman = metric_names(place)
    scores = []
    if np.ptp(said) > ROUNDING:
        scores += [
            score_of_items(pearson, "pearson", pairs, pairs, said, change),
            Score(metric=plain, value=uncentred(change, said)),
        ]
    if np.ptp(predicted) > ROUNDING:
        scores.append(score_of_items(spearman, "spearman", contexts, both, predicted.ravel(), gold.ravel()))
    return scores
