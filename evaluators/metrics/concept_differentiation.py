"""Do two occurrences of words carry one concept? Told by a threshold on their cosine distance.

Source: CALE, section 5.1. "all", "sl" and "dl" are all pairs, pairs of one lemma and pairs of two lemmas; the four
categories, such as "sc_dl", say whether concept and lemma are the same or different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from corpora.cale.records import CATEGORIES
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Items, Score

COLUMNS = ("all", "sl", "dl")
SHORT = tuple(category.lower().replace("/", "_") for category in CATEGORIES)  # in metric names
QUANTILES = (5, 25, 50, 75, 95)
FIGURES = ("dist_mean", *(f"dist_q{percent:02d}" for percent in QUANTILES))
# What `distance_scores` can yield, True where larger is better: pairs of one concept should be near, others far.
DISTANCE_METRICS = {
    **{f"spcd/{figure}_{short}": short.startswith("dc") for figure in FIGURES for short in SHORT},
    "spcd/dist_spread": True,
}
# Category -> the metric whose items are the distances of its pairs.
DISTANCES_BY_CATEGORY = {
    category: f"spcd/dist_mean_{short}" for category, short in zip(CATEGORIES, SHORT, strict=True)
}
# What `baseline_scores` can yield.
BASELINE_METRICS = {f"spcd/1l1c/{figure}_{column}": True for column in ("all", "sl") for figure in ("ba", "f1")}


class PairItems(NamedTuple):
    """What N pairs are called, and the anchor's concept and lemma: either is drawn with all its pairs."""

    ids: Sequence[str]
    concepts: Sequence[str]
    lemmas: Sequence[str]

    def take(self, rows: np.ndarray, figure: str = "") -> Items:
        """The pairs at these places, grouped by concept. (M,) integers -> M items.

        Those of a figure of one lemma (…sl) by lemma: its pairs share its occurrences, whichever the concept.
        """
        return Items(self.ids, self.lemmas if figure.endswith("sl") else self.concepts).take(rows)


def metric_names(place: str) -> dict[str, bool]:
    """What `pair_scores` can yield, True where larger is better."""
    figures = [f"{figure}_{column}" for column in COLUMNS for figure in ("ba", "f1")]
    figures += [f"acc_{short}" for short in SHORT] + ["recall_pos", "recall_neg"]
    return {f"{place}/{figure}": True for figure in figures}


def ranking_names(place: str) -> dict[str, bool]:
    """What `ranking_scores` can yield, True where larger is better."""
    return {f"{place}/{figure}_{column}": True for column in COLUMNS for figure in ("auc", "ap")}


def best_threshold(distances: np.ndarray, labels: np.ndarray) -> float:
    """The t whose rule "one concept where distance < t" is right most often; of equals the smallest.

    distances, labels (N,) -> scalar. Candidates: the mid-points between consecutive distinct distances, one value
    below and one above all. O(N log N). ValueError without pairs.
    """
    if len(distances) == 0:
        raise ValueError("no pairs to choose a threshold from")
    values, place = np.unique(np.asarray(distances, np.float64), return_inverse=True)
    gain = np.bincount(place, np.where(labels, 1.0, -1.0))  # right answers won by moving t above each value
    candidates = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])
    return float(candidates[np.argmax(np.append(0.0, np.cumsum(gain)))])


def is_below(distances: np.ndarray, threshold: float) -> np.ndarray:
    """One concept? (N,) -> (N,) bool. In float64: the middle of two neighbours in float32 is neither of them."""
    return distances.astype(np.float64) < threshold


def pair_scores(
    place: str, items: PairItems, distances: np.ndarray, category: np.ndarray, threshold: float
) -> list[Score]:
    """Balanced accuracy and F1 in three columns, accuracy in each category, recall of both classes.

    distances, category (N,). The items of the first two are decisions, 1 for "one concept"; of the others, whether
    the decision is right. A column without both classes, and a category without pairs, yields nothing.
    """
    decided, label = is_below(distances, threshold), category < 2
    scores = []
    for column, rows in _columns(category):
        chosen = (*items.take(rows, column), decided[rows], label[rows])
        scores.append(score_of_items(f"{place}/ba_{column}", "balanced_accuracy", *chosen))
        scores.append(score_of_items(f"{place}/f1_{column}", "f1", *chosen))
    parts = [(f"acc_{short}", category == number) for number, short in enumerate(SHORT)]
    for figure, part in (*parts, ("recall_pos", label), ("recall_neg", ~label)):
        rows = np.flatnonzero(part)
        if len(rows):
            right = decided[rows] == label[rows]
            scores.append(score_of_items(f"{place}/{figure}", "mean", *items.take(rows, figure), right))
    return scores


def ranking_scores(place: str, items: PairItems, distances: np.ndarray, category: np.ndarray) -> list[Score]:
    """Area under the ROC curve and average precision of "the nearer, the likelier one concept", in three columns.

    No threshold is chosen: two of equal worth can lie far apart, and a small move between them swings balanced
    accuracy from seed to seed. distances, category (N,). A column without both classes yields nothing.
    """
    from sklearn.metrics import average_precision_score

    near, label = -distances.astype(np.float64), category < 2
    scores = []
    for column, rows in _columns(category):
        chosen = (*items.take(rows, column), near[rows], label[rows])
        scores.append(score_of_items(f"{place}/auc_{column}", "auc", *chosen))
        precision = float(average_precision_score(label[rows], near[rows]))
        scores.append(Score(metric=f"{place}/ap_{column}", value=precision))
    return scores


def distance_scores(items: PairItems, distances: np.ndarray, category: np.ndarray) -> list[Score]:
    """Mean and quantiles of the distance by category (CALE, figure 1); the items of a mean are the distances.

    dist_spread is how much farther DC/DL lies than SC/SL. distances, category (N,). A category without pairs
    yields nothing.
    """
    scores = []
    for number, short in enumerate(SHORT):
        rows = np.flatnonzero(category == number)
        if not len(rows):
            continue
        values, better = distances[rows].astype(np.float64), short.startswith("dc")
        metric = f"spcd/dist_mean_{short}"
        scores.append(score_of_items(metric, "mean", *items.take(rows, short), values, larger_is_better=better))
        for percent, value in zip(QUANTILES, np.percentile(values, QUANTILES), strict=True):
            metric = f"spcd/dist_q{percent:02d}_{short}"
            scores.append(Score(metric=metric, value=float(value), larger_is_better=better))
    near, far = (distances[category == CATEGORIES.index(name)] for name in ("SC/SL", "DC/DL"))
    if len(near) and len(far):
        scores.append(Score(metric="spcd/dist_spread", value=float(far.mean() - near.mean())))
    return scores


def one_lemma_one_concept(sc_sl: int, sc_dl: int, dc_sl: int, dc_dl: int) -> Mapping[str, float]:
    """What "one concept where the lemma is the same" scores on so many pairs of each category: ba_all, f1_all, ...

    Source: CALE, section 5.1, the 1L1C baseline. On pairs of one lemma it always says yes.
    """
    return {
        "ba_all": (sc_sl / (sc_sl + sc_dl) + dc_dl / (dc_sl + dc_dl)) / 2,
        "f1_all": 2 * sc_sl / (2 * sc_sl + sc_dl + dc_sl),
        "ba_sl": 0.5,
        "f1_sl": 2 * sc_sl / (2 * sc_sl + dc_sl),
    }


def baseline_scores(category: np.ndarray) -> list[Score]:
    """`one_lemma_one_concept` on these pairs, nothing when a category is empty. category (N,)."""
    counts = np.bincount(category, minlength=len(CATEGORIES)).tolist()
    if 0 in counts:
        return []
    return [
        Score(metric=f"spcd/1l1c/{name}", value=value) for name, value in one_lemma_one_concept(*counts).items()
    ]


def _columns(category: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Name and rows of each column that holds pairs of both classes."""
    same_lemma, label = category % 2 == 0, category < 2
    for column, held in zip(COLUMNS, (np.full(len(category), True), same_lemma, ~same_lemma), strict=True):
        if len(np.unique(label[held])) == 2:
            yield column, np.flatnonzero(held)
