"""The paired scores that claims are judged on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from corpora.store.ties import tied
from evaluators.metrics.scores import Aggregate
from evaluators.significance.seed_tests import ROUNDING, spread_is_rounding

BY_CLASS = ("auc", "balanced_accuracy")  # figures that compare items labelled 1 with items labelled 0
BySeed = Mapping[int, float | None] | Iterable[tuple[int, float | None]]


class ItemsError(ValueError):
    """Items that do not belong together, or do not add up to the score that they are said to make."""


@lru_cache(maxsize=32)
def _numbered(names: tuple[str, ...]) -> np.ndarray:
    """Numbers for names, from 0 in order of first appearance; the claims of a study are about the same items."""
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
        """Itself, as a sum of one."""
        return ((1.0, self),)

    @property
    def groups(self) -> int:
        """How many independent groups of items there are."""
        return int(self.group_index.max()) + 1

    @cached_property
    def rarest(self) -> int:
        """Groups that the item variance rests on: of a figure by class, those that hold the rarer one."""
        return rarest(self.aggregate, self.gold, self.group_index)

    @property
    def shortfall(self) -> float:
        """How many times as much new groups vary as resamples of these ones."""
        return _shortfall(self, self.group_index)


@dataclass(frozen=True, eq=False)
class ItemSum:
    """Differences that are added up, each with its weight and its items: a mean over tasks, a gain less a gain.

    Items of two terms are one when they have the same name, and groups that hold one item, or have one name, are
    one group: resampled together. All terms hold the same seeds.
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
        """Where the items of each term stand in `group_index`."""
        ends = np.cumsum([len(term.item_ids) for _, term in self.terms]).tolist()
        return tuple(map(slice, [0, *ends[:-1]], ends))

    @property
    def groups(self) -> int:
        """Independent groups of the term that has the fewest: from so many, at least, is the variance known."""
        return min(len(np.unique(self.group_index[place])) for place in self.places)

    @property
    def rarest(self) -> int:
        """Groups that the item variance rests on, of the term where they are fewest."""
        return min(rarest(term.aggregate, term.gold, index) for term, index in self._indexed)

    @property
    def shortfall(self) -> float:
        """How many times as much new groups vary as resamples of these ones, in the term where that is most."""
        return max(_shortfall(term, index) for term, index in self._indexed)

    @property
    def _indexed(self) -> list[tuple[ItemScores, np.ndarray]]:
        return [(term, self.group_index[place]) for (_, term), place in zip(self.terms, self.places, strict=True)]


def rarest(aggregate: Aggregate, gold: np.ndarray | None, group_of_item: np.ndarray) -> int:
    """Groups that the item variance of a figure rests on, as numbers or by name. gold, group_of_item: (M,)."""
    if aggregate not in BY_CLASS or gold is None:
        return len(np.unique(group_of_item))
    return min(len(np.unique(group_of_item[gold == label])) for label in (0, 1))


def _shortfall(items: ItemScores, group_of_item: np.ndarray) -> float:
    """G / (G - 1) of groups and of items of a class, of which there may be few; 1 of items by themselves."""
    fewest = rarest(items.aggregate, items.gold, group_of_item)
    return 1.0 if fewest in (1, len(items.item_ids)) else fewest / (fewest - 1)  # one group alone has no variance


Items = ItemScores | ItemSum


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedSeeds:
    """Scores of both arms at the same seeds: complete pairs only, in the order in which seeds were planned.

    An arm without training has its one value at every seed. dropped: (seed, reason); a reason begins with what
    is at fault: "treatment", "control", "matched control", "both arms" or "pairing". matched_control and
    matched_items (treatment against matched control) serve signal isolation. selected: the runs include a
    selection seed or a trial of the search. exploratory: the claim was declared after these could be seen. tasks:
    the scores are means over these tasks.
    """

    seeds: tuple[int, ...]
    treatment: tuple[float, ...]
    control: tuple[float, ...]
    larger_is_better: bool = True
    dropped: tuple[tuple[int, str], ...] = ()
    items: Items | None = None
    matched_control: tuple[float, ...] | None = None
    matched_items: Items | None = None
    selected: bool = False
    exploratory: bool = False
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.seeds)
        if len(set(self.seeds)) != n:
            raise ValueError(f"paired seeds: a seed is repeated in {self.seeds}")
        for name, values in self._arms().items():
            if len(values) != n or not np.isfinite(values).all():
                raise ValueError(
                    f"paired seeds: {name} needs one finite score for each of {n} seeds, got {values}"
                )
        for name, items in (("items", self.items), ("matched_items", self.matched_items)):
            held = {len(term.treatment) for _, term in items.terms} if items is not None else {n}
            if held != {n}:
                raise ValueError(f"paired seeds: {name} holds {held} seeds, the scores {n}")

    def _arms(self) -> dict[str, tuple[float, ...]]:
        arms = {"treatment": self.treatment, "control": self.control}
        return arms if self.matched_control is None else arms | {"matched control": self.matched_control}

    @property
    def deltas(self) -> np.ndarray:
        """(n,) treatment minus control, positive where the treatment is better."""
        return self.sign * (np.array(self.treatment) - np.array(self.control))

    @property
    def matched_deltas(self) -> np.ndarray:
        """(n,) the same against the matched control."""
        assert self.matched_control is not None
        return self.sign * (np.array(self.treatment) - np.array(self.matched_control))

    @property
    def scale(self) -> float:
        """The largest score in size: what rounding is measured against."""
        return float(np.max(np.abs([self.treatment, self.control]), initial=0.0))

    @property
    def identical(self) -> bool:
        """Whether no delta is more than rounding."""
        return bool(np.max(np.abs(self.deltas), initial=0.0) <= ROUNDING * self.scale)

    @property
    def flat(self) -> bool:
        """Whether the deltas have no spread."""
        return spread_is_rounding(self.deltas, self.scale)

    @property
    def frozen(self) -> bool:
        """Whether neither arm varies with the seed."""
        return all(spread_is_rounding(np.array(arm), self.scale) for arm in (self.treatment, self.control))

    @property
    def sign(self) -> int:
        return 1 if self.larger_is_better else -1

    @property
    def runs_missing(self) -> bool:
        """Too many failures to compare the survivors: more than 20 % of the pairs, or two in one arm alone."""
        at_fault = [
            next((arm for arm in self._arms() if reason.startswith(arm)), "") for _, reason in self.dropped
        ]
        share = len(self.dropped) / max(1, len(self.seeds) + len(self.dropped))
        return bool(self.seeds) and (share > 0.20 or any(at_fault.count(arm) >= 2 for arm in self._arms()))


def pair(
    treatment: BySeed | float,
    control: BySeed | float,
    *,
    seeds: Sequence[int] | None = None,
    larger_is_better: bool = True,
    matched_control: BySeed | float | None = None,
    differing: Mapping[int, Collection[str]] | None = None,
) -> PairedSeeds:
    """Pairs of scores at equal seeds, with the reason for every seed left out. Nothing is imputed.

    Each arm is {seed: value}, None for a run that is not finished, nan for one without this figure; or one number
    for an arm that is not trained. seeds: those planned, in their order; by default all that any arm names,
    ascending. differing: {seed: fields} in which the two runs differ beside what was declared. ValueError for a
    seed with two unequal values.
    """
    given = {"treatment": treatment, "control": control}
    if matched_control is not None:
        given["matched control"] = matched_control
    tables = {arm: None if isinstance(rows, float | int) else _by_seed(arm, rows) for arm, rows in given.items()}
    if seeds is None:
        seeds = sorted({seed for table in tables.values() if table is not None for seed in table})
    arms = {
        arm: dict.fromkeys(seeds, float(given[arm])) if table is None else table  # type: ignore[arg-type]
        for arm, table in tables.items()
    }
    kept, dropped = [], []
    for seed in seeds:
        fields = (differing or {}).get(seed)
        reason = f"pairing: runs differ in {', '.join(sorted(fields))}" if fields else _incomplete(arms, seed)
        if reason:
            dropped.append((seed, reason))
        else:
            kept.append(seed)
    columns: dict[str, Any] = {
        arm.replace(" ", "_"): tuple(map(table.__getitem__, kept)) for arm, table in arms.items()
    }
    return PairedSeeds(seeds=tuple(kept), dropped=tuple(dropped), larger_is_better=larger_is_better, **columns)


def _by_seed(arm: str, rows: BySeed) -> dict[int, float | None]:
    """{seed: value}, None for a run that is not finished."""
    table: dict[int, float | None] = {}
    for seed, score in rows.items() if isinstance(rows, Mapping) else rows:
        if seed in table and repr(table[seed]) != repr(score):  # nan is like nan, and unlike None
            raise ValueError(f"{arm}: seed {seed} has two values, {table[seed]!r} and {score!r}")
        table[int(seed)] = score
    return table


def _incomplete(arms: Mapping[str, Mapping[int, float | None]], seed: int) -> str:
    """Which arm lacks a finite score at this seed and why; empty when the pair is complete."""
    found = {arm: _lacking(table.get(seed)) for arm, table in arms.items()}
    why = {arm: reason for arm, reason in found.items() if reason}
    if len(why) > 1 and {"treatment", "control"} <= set(why):
        return f"both arms: {why['treatment']}"
    return next((f"{arm}: {reason}" for arm, reason in why.items()), "")


def _lacking(score: float | None) -> str:
    if score is None:
        return "no finished run"
    if math.isnan(score):
        return "its run yielded no such figure"
    return "" if math.isfinite(score) else f"the score is {score}"


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

    ItemsError unless every run covers the same items.
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
