"""The items of a comparison: both arms' scores on each, and the groups that are resampled together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from corpora.store.ties import tied
from evaluators.metrics.scores import Aggregate

BY_CLASS = ("auc", "balanced_accuracy")  # figures that compare items labelled 1 with items labelled 0


class ItemsError(ValueError):
    """Items that do not match each other, or do not add up to their score."""


@lru_cache(maxsize=32)
def _numbered(names: tuple[str, ...]) -> np.ndarray:
    """Number the names from 0 in order of first appearance; cached, as a study's claims share their items."""
    numbers: dict[str, int] = {}
    found = np.array([numbers.setdefault(name, len(numbers)) for name in names])
    found.flags.writeable = False
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemScores:
    """Item-level scores of both arms for the paired seeds, items in one order.

    treatment, control (n, M): item scores ("mean"), or predictions compared with gold (M,), 0/1 labels for
    "auc", "balanced_accuracy" and "f1". group_ids: what is resampled together, e.g. the pairs of one anchor.
    ItemsError for anything that is not n x M finite numbers over M distinct items in at least two groups.
    """

    aggregate: Aggregate
    treatment: np.ndarray
    control: np.ndarray
    gold: np.ndarray | None = None
    item_ids: tuple[str, ...]
    group_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        size = len(self.item_ids)
        for name, rows in (("treatment", self.treatment), ("control", self.control)):
            if rows.ndim != 2 or rows.shape[1] != size or len(rows) != len(self.treatment):
                raise ItemsError(
                    f"items: {name} has shape {rows.shape}, accepted: seeds x {size} items in both arms"
                )
            if not np.isfinite(rows).all():
                row, item = np.argwhere(~np.isfinite(rows))[0]
                raise ItemsError(
                    f"items: {name} row {row}, item {self.item_ids[item]}: {rows[row, item]} is not finite"
                )
        if len(set(self.item_ids)) != size or len(self.group_ids) != size:
            raise ItemsError(
                f"items: {size} items need distinct ids and one group each, got {len(self.group_ids)} groups"
            )
        if len(set(self.group_ids)) < 2:
            raise ItemsError("items: fewer than two groups of items, so their variance is unknown")
        if self.aggregate not in ("mean", "sd"):
            self._check_gold(size)

    def _check_gold(self, size: int) -> None:
        if self.gold is None or self.gold.shape != (size,) or not np.isfinite(self.gold).all():
            raise ItemsError(f"items: {self.aggregate} needs gold, one finite value for each of {size} items")
        if self.aggregate in ("auc", "balanced_accuracy", "f1") and not np.isin(self.gold, (0, 1)).all():
            raise ItemsError(f"items: {self.aggregate} needs gold labels 0 or 1")

    @cached_property
    def group_index(self) -> np.ndarray:
        """Number of each item's group, (M,) from 0, in order of first appearance."""
        return _numbered(self.group_ids)

    @property
    def terms(self) -> tuple[tuple[float, ItemScores], ...]:
        """This object as a sum of one term with weight 1."""
        return ((1.0, self),)

    @property
    def indexed(self) -> list[tuple[ItemScores, np.ndarray]]:
        """The one term with its items' groups."""
        return [(self, self.group_index)]

    @property
    def groups(self) -> int:
        """The number of independent groups of items."""
        return int(self.group_index.max()) + 1

    @cached_property
    def effective(self) -> float:
        """The effective number of groups: see `effective_groups`."""
        return effective_groups(self.aggregate, self.gold, self.group_index)

    @property
    def shortfall(self) -> float:
        """The factor by which new groups vary more than resamples of these groups."""
        return _shortfall(self.effective, len(self.item_ids))


@dataclass(frozen=True, eq=False)
class ItemSum:
    """A weighted sum of differences, each with its items: a mean over tasks, or the difference of two gains.

    Items of equal names in two terms are the same item. Groups that share an item or a name are one group, which
    is resampled together. All terms have the same seeds.
    """

    terms: tuple[tuple[float, ItemScores], ...]

    @cached_property
    def item_ids(self) -> tuple[str, ...]:
        """The items of all terms, each once."""
        return tuple(dict.fromkeys(item for _, term in self.terms for item in term.item_ids))

    @cached_property
    def group_index(self) -> np.ndarray:
        """Number of the group of each term's each item, term after term, from 0. (sum of M,)"""
        rows = [row for _, term in self.terms for row in zip(term.item_ids, term.group_ids, strict=True)]
        joint = tied((f"item {item}", f"group {group}") for item, group in rows)
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(joint(f"group {group}"), len(numbers)) for _, group in rows])

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """The slice of each term's items in `group_index`."""
        ends = np.cumsum([len(term.item_ids) for _, term in self.terms]).tolist()
        return tuple(map(slice, [0, *ends[:-1]], ends))

    @property
    def groups(self) -> int:
        """The number of independent groups in the term with the fewest, which limits the variance's precision."""
        return min(len(np.unique(self.group_index[place])) for place in self.places)

    @property
    def effective(self) -> float:
        """The smallest `effective` of all terms."""
        return min(self._effective)

    @property
    def shortfall(self) -> float:
        """The largest `shortfall` of all terms."""
        sizes = [len(term.item_ids) for _, term in self.terms]
        return max(map(_shortfall, self._effective, sizes))

    @cached_property
    def _effective(self) -> list[float]:
        return [effective_groups(term.aggregate, term.gold, index) for term, index in self.indexed]

    @property
    def indexed(self) -> list[tuple[ItemScores, np.ndarray]]:
        """Each term with its items' groups, as the other terms join them."""
        return [(term, self.group_index[place]) for (_, term), place in zip(self.terms, self.places, strict=True)]


def effective_groups(aggregate: Aggregate, gold: np.ndarray | None, group_of_item: np.ndarray) -> float:
    """(Σ m)² / Σ m² for groups of m items, of the rarer class if the figure is by class; G for G equal groups.

    gold, group_of_item (ids or names): (M,). The variance of a mean by such groups is known as if there were so
    many equal ones, if items of a group are independent (Satterthwaite), and less well if they are alike. Source:
    Carter, Schnepel and Steigerwald 2017, the effective number of clusters.
    """
    if aggregate not in BY_CLASS or gold is None:
        return _effective(group_of_item)
    return min(_effective(group_of_item[gold == label]) for label in (0, 1))


def _effective(group_of_item: np.ndarray) -> float:
    """0 without items."""
    sizes = np.unique(group_of_item, return_counts=True)[1]
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(sizes) else 0.0


def _shortfall(groups: float, items: int) -> float:
    """G / (G - 1) for G effective groups; 1 for independent items."""
    return 1.0 if groups in (1, items) else groups / (groups - 1)  # one group alone has no variance


Items = ItemScores | ItemSum


def align_items(
    seeds: Sequence[int],
    treatment: Mapping[int, Mapping[str, float]],
    control: Mapping[int, Mapping[str, float]],
    *,
    aggregate: Aggregate,
    gold: Mapping[str, float] | None = None,
    groups: Mapping[str, str] | None = None,
) -> ItemScores:
    """Item scores {seed: {item id: value}} of both arms as matrices, in the item order of the first run.

    Raises ItemsError unless every run has the same items.
    """
    ids = tuple(treatment[seeds[0]])

    def matrix(arm: str, runs: Mapping[int, Mapping[str, float]]) -> np.ndarray:
        for seed in seeds:
            if runs[seed].keys() != set(ids):
                odd = sorted(runs[seed].keys() ^ set(ids))
                raise ItemsError(
                    f"items: {arm} seed {seed} differs in {len(odd)} items from the first run, e.g. {odd[0]}"
                )
        return np.array([[runs[seed][item] for item in ids] for seed in seeds], dtype=float)

    return ItemScores(
        aggregate=aggregate,
        treatment=matrix("treatment", treatment),
        control=matrix("control", control),
        gold=None if gold is None else np.array([gold[item] for item in ids], dtype=float),
        item_ids=ids,
        group_ids=ids if groups is None else tuple(groups[item] for item in ids),
    )
