"""Figures of graded sentence pairs: one Spearman over all subsets, and the means over subsets beside it.

Papers mean one of three things by "STS12": Spearman over the concatenated subsets ("all", which decides here), the
mean of the subsets' Spearmans, or their mean weighted by pairs. They differ by up to six points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from evaluators.metrics.item_metrics import score_of_items, spearman
from evaluators.metrics.scores import Items, Score


def metric_names(name: str, subsets: Sequence[str]) -> dict[str, bool]:
    """Every figure of a set; those of single subsets where it has several."""
    parts = ["mean", "weighted_mean", *(f"{subset}/spearman" for subset in subsets)] if len(subsets) > 1 else []
    return {f"{name}/{figure}": True for figure in ("spearman", *parts)}


def sts_scores(name: str, items: Items, subset: np.ndarray, cosines: np.ndarray, gold: np.ndarray) -> list[Score]:
    """Spearman over all pairs, with its items; over each subset, their mean and mean weighted by pairs, without.

    subset (N,) names each pair's subset; cosines, gold (N,). A subset that is constant on either side has no
    Spearman: then the means are left out too.
    """
    scores = [score_of_items(f"{name}/spearman", "spearman", items.ids, items.groups, cosines, gold)]
    rows = {part: np.flatnonzero(subset == part) for part in dict.fromkeys(subset.tolist())}
    if len(rows) == 1:
        return scores
    parts = {part: spearman(gold[those], cosines[those]) for part, those in rows.items()}
    means = subset_means(parts, {part: len(those) for part, those in rows.items()})
    figures = means | {f"{part}/spearman": value for part, value in parts.items()}
    scores += [Score(metric=f"{name}/{figure}", value=value) for figure, value in figures.items()]
    return [score for score in scores if not math.isnan(score.value)]


def subset_means(parts: Mapping[str, float], sizes: Mapping[str, int]) -> dict[str, float]:
    """The plain mean of the subsets' figures, and the mean weighted by how many pairs each has."""
    weighted = sum(parts[part] * sizes[part] for part in parts) / sum(sizes.values())
    return {"mean": sum(parts.values()) / len(parts), "weighted_mean": weighted}
