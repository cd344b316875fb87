"""How much did a word change between two periods? The distance of its uses, against graded gold.

Source: CALE, section 5.2 and appendix D; the measures are Kutuzov and Giulianelli's (2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import ROUNDING, aligned_cosines, check_finite, unit


def average_pairwise_distance(first: np.ndarray, second: np.ndarray) -> float:
    """APD: mean cosine distance of every use of one period to every use of the other. (N, D), (M, D) -> scalar.

    The mean over all pairs is 1 - the product of the mean unit vectors, so N + M rows are read, not N·M pairs.
    """
    means = [unit(rows.astype(np.float64)).mean(0) for rows in (first, second)]
    return float(1 - means[0] @ means[1])


def prototype_distance(first: np.ndarray, second: np.ndarray) -> float:
    """PRT: cosine distance of the two periods' mean vectors. (N, D), (M, D) -> scalar.

    The rows are averaged as they are, as the paper prints it. ValueError for a mean of zeros.
    """
    means = [rows.astype(np.float64).mean(0, keepdims=True) for rows in (first, second)]
    return float(1 - aligned_cosines(*means)[0])


def metric_names(place: str) -> dict[str, bool]:
    """What `change_scores` yields."""
    return {f"{place}/apd_spearman": True, f"{place}/prt_spearman": True}


def change_scores(
    place: str, words: Sequence[str], uses: Sequence[tuple[np.ndarray, np.ndarray]], gold: np.ndarray
) -> list[Score]:
    """Spearman of both measures with gold over the words. uses: per word (N, D) and (M, D); gold (W,).

    A measure that is the same for every word (where only the lemma counts) has no correlation, and no score.
    """
    check_finite(f"{place}: gold", gold)
    measured = [
        np.array([measure(*pair) for pair in uses]) for measure in (average_pairwise_distance, prototype_distance)
    ]
    return [
        score_of_items(metric, "spearman", words, words, values, gold)
        for metric, values in zip(metric_names(place), measured, strict=True)
        if np.ptp(values) > ROUNDING
    ]
