"""The result type of tasks: a metric's value with the items that it was computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Aggregate = Literal["mean", "auc", "spearman", "pearson", "balanced_accuracy", "f1", "sd"]


class Items(NamedTuple):
    """The names of N items, and their groups, which are resampled together."""

    ids: Sequence[str]
    groups: Sequence[str]

    def take(self, rows: np.ndarray) -> Items:
        """The items at these places. (M,) integers -> M items."""
        return Items([self.ids[row] for row in rows.tolist()], [self.groups[row] for row in rows.tolist()])


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """One metric of one run.

    value is the aggregate of the items, in [0, 1] or [-1, 1] if the metric has such a range.
    aggregate names how items become the value: "mean" averages `values`; "auc", "balanced_accuracy" and "f1"
    read `values` as scores and `gold` as 0/1 labels; "spearman" and "pearson" correlate `values` with `gold`;
    "sd" is the standard deviation of `values`, over N - 1.
    None: the metric has no items (geometry of a whole space).
    group_ids is the unit of resampling: items that share a sentence, a concept or a document share a group.
    taken_for: in retrieval, the name (see the task's `item_texts`) of the best wrong answer; "" if the right
    answer ranks above it. It is descriptive; no figure depends on it.
    """

    metric: str
    value: float
    larger_is_better: bool = True
    aggregate: Aggregate | None = None
    item_ids: Sequence[str] = ()
    group_ids: Sequence[str] = ()
    values: np.ndarray | None = None
    gold: np.ndarray | None = None
    taken_for: Sequence[str] = ()
