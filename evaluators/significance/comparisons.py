"""The paired scores by which claims are judged."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluators.significance.paired_items import Items
from evaluators.significance.seed_tests import ROUNDING, spread_is_rounding

BySeed = Mapping[int, float | None] | Iterable[tuple[int, float | None]]
ARMS = "treatment", "control", "matched control"
Dropped = Sequence[tuple[int, str]]  # seed, reason


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedSeeds:
    """Scores of both arms at the same seeds: complete pairs only, in the planned order of seeds.

    An arm without training has the same value at every seed. dropped: (seed, reason); a reason begins with what is
    at fault: "treatment", "control", "matched control", "both arms" or "pairing". matched_control and
    matched_items (treatment against matched control) are for signal isolation. selected: the runs include a
    selection seed or a trial of the search. exploratory: the claim was declared after the scores could be seen.
    tasks: the scores are means over these tasks.
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
        """(n,) treatment minus control, positive if the treatment is better."""
        return self.sign * (np.array(self.treatment) - np.array(self.control))

    @property
    def matched_deltas(self) -> np.ndarray:
        """(n,) the same against the matched control."""
        assert self.matched_control is not None
        return self.sign * (np.array(self.treatment) - np.array(self.matched_control))

    @property
    def scale(self) -> float:
        """The largest |score|, relative to which rounding is measured."""
        return float(np.max(np.abs([self.treatment, self.control]), initial=0.0))

    @property
    def identical(self) -> bool:
        """True if no delta is more than rounding."""
        return bool(np.max(np.abs(self.deltas), initial=0.0) <= ROUNDING * self.scale)

    @property
    def flat(self) -> bool:
        """True if the deltas have no spread."""
        return spread_is_rounding(self.deltas, self.scale)

    @property
    def frozen(self) -> bool:
        """True if neither arm varies with the seed."""
        return all(spread_is_rounding(np.array(arm), self.scale) for arm in (self.treatment, self.control))

    @property
    def sign(self) -> int:
        return 1 if self.larger_is_better else -1

    @property
    def runs_missing(self) -> bool:
        """True if too many runs failed to compare the others: more than 20 % of the pairs, or two in one arm."""
        share = len(self.dropped) / max(1, len(self.seeds) + len(self.dropped))
        return bool(self.seeds) and (share > 0.20 or one_arm_fails(self.dropped))


def one_arm_fails(dropped: Dropped) -> bool:
    """True if two pairs or more were left out for one arm alone, which no further seed makes good."""
    at_fault = [next((arm for arm in ARMS if reason.startswith(arm)), "") for _, reason in dropped]
    return any(at_fault.count(arm) >= 2 for arm in ARMS)


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
    if {"treatment", "control"} <= set(why):
        return f"both arms: {why['treatment']}"
    return next((f"{arm}: {reason}" for arm, reason in why.items()), "")


def _lacking(score: float | None) -> str:
    if score is None:
        return "no finished run"
    if math.isnan(score):
        return "its run yielded no such figure"
    return "" if math.isfinite(score) else f"the score is {score}"
