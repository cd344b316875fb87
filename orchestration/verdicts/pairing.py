"""Pairs the arms of a claim by seed: their scores, and the items behind their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.paired_items import (
    Items,
    ItemScores,
    ItemsError,
    ItemSum,
    align_items,
    effective_groups,
)
from orchestration.plan.spread import Sample, SeenPairs
from orchestration.verdicts.records import contradiction

if TYPE_CHECKING:
    from evaluators.metrics.scores import Aggregate
    from evaluators.significance.claims import Claim, ClaimSide
    from orchestration.plan.spread import Seen
    from orchestration.verdicts.records import ItemNames, RunItems, StudyRecords


def seen(records: StudyRecords) -> Seen:
    """A function that reads from the ledger what a plan may know of a claim."""

    def pairs_of(claim: Claim) -> SeenPairs:
        try:
            return SeenPairs(pairs=paired(records, claim), sample=_sample(records, claim))
        except ItemsError as error:
            raise contradiction(records, error) from None

    return pairs_of


def _sample(records: StudyRecords, claim: Claim) -> Sample | None:
    """A sample from one finished run of the claim; None for means and gains, or without such a run."""
    for side in (claim.sides["control"], claim.sides["treatment"]):
        run_id = next(iter(records.finished(side.arm, str(side.backbone)).values()), None)
        found = None if run_id is None else records.measured(run_id, claim.metric)
        if run_id is None or found is None or found.aggregate is None or side.over is not None:
            continue
        groups, effective = _independent(found.aggregate, records.items(run_id, claim.metric).names)
        if effective >= 2:
            return Sample(
                arm=side.arm, score=found.value, groups=groups, effective=effective, aggregate=found.aggregate
            )
    return None


def _independent(aggregate: Aggregate, names: ItemNames) -> tuple[int, float]:
    """The number of independent items of a figure, and the effective number of groups, of the rarer class.

    For a figure by class the first is at most twice the second, as if both classes were as rare.
    """
    groups = np.unique(names.groups, return_inverse=True)[1]
    effective = effective_groups(aggregate, names.gold, groups)
    return int(min(effective_groups("mean", None, groups), 2 * effective)), effective


def paired(records: StudyRecords, claim: Claim) -> PairedSeeds:
    """The scores of the claim's sides, with their items, at every seed that the plan has for all sides."""
    scores = {role: _scores(records, side, claim.metric) for role, side in claim.sides.items()}
    common = sorted(seed for seed in records.paired_seeds if all(seed in by_seed for by_seed in scores.values()))
    figures = records.study.figures_of(claim.metric)
    pairs = pair(
        scores["treatment"],
        scores["control"],
        seeds=common,
        larger_is_better=records.larger_is_better[claim.metric],
        matched_control=scores.get("matched_control"),
    )
    if not pairs.seeds:
        return pairs
    matched_items = _items_once(records, claim, pairs.seeds, "matched_control") if claim.matched_control else None
    return replace(
        pairs,
        items=_items_once(records, claim, pairs.seeds, "control"),
        matched_items=matched_items,
        tasks=figures if len(figures) > 1 else (),
    )


def _scores(records: StudyRecords, side: ClaimSide, metric: str) -> dict[int, float | None]:
    """seed -> figure of a side: that of its arm, or its gain over another arm at the same seed."""
    own = records.values(side.arm, str(side.backbone), metric)
    if side.over is None:
        return own
    base = records.values(side.over, str(side.backbone), metric)
    return {seed: _difference(own[seed], base[seed]) for seed in own if seed in base}


def _difference(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left - right


def _items_once(records: StudyRecords, claim: Claim, seeds: Sequence[int], control: str) -> Items | None:
    """As `_items`, cached while the runs are the same, so that nothing derived is computed again."""
    sides = claim.sides["treatment"], claim.sides[control]
    places = [(arm, str(side.backbone)) for side in sides for arm in side.arms]
    runs = tuple(records.finished(*place)[seed] for place in places for seed in seeds)
    cached = records.reads.compared.get((claim.metric, *sides))
    if cached is None or cached[0] != runs:
        cached = runs, _items(records, claim, seeds, control)
        records.reads.compared[claim.metric, *sides] = cached
    return cached[1]


def _items(records: StudyRecords, claim: Claim, seeds: Sequence[int], control: str) -> Items | None:
    """The items behind the difference of treatment and control at these seeds; None if a figure keeps none.

    A mean over K tasks is a sum with weights 1/K, a difference of two gains one with weights 1 and -1.
    """
    left, right = claim.sides["treatment"], claim.sides[control]
    if left.over is None or right.over is None:
        contrasts = [(1.0, (left.arm, str(left.backbone)), (right.arm, str(right.backbone)))]
    else:
        contrasts = [
            (1.0, (left.arm, str(left.backbone)), (left.over, str(left.backbone))),
            (-1.0, (right.arm, str(right.backbone)), (right.over, str(right.backbone))),
        ]
    figures = records.study.figures_of(claim.metric)
    terms: list[tuple[float, ItemScores]] = []
    for metric in figures:
        for weight, first_arm, second_arm in contrasts:
            found = _item_scores(records, metric, seeds, first_arm, second_arm)
            if found is None:
                return None
            terms.append((weight / len(figures), found))
    return terms[0][1] if len(terms) == 1 else ItemSum(tuple(terms))


def _item_scores(
    records: StudyRecords, metric: str, seeds: Sequence[int], one: tuple[str, str], other: tuple[str, str]
) -> ItemScores | None:
    """Item-level scores of two arms, each (arm, backbone), at these seeds. None if the metric keeps none, or if
    all are of one group, which tells nothing about others."""
    runs = [records.finished(arm, backbone) for arm, backbone in (one, other)]
    run_id = runs[0][seeds[0]]
    measured, names = records.measured(run_id, metric), records.items(run_id, metric).names
    if measured is None or measured.aggregate is None or not names.ids:
        return None
    sides = [[records.items(of_arm[seed], metric) for seed in seeds] for of_arm in runs]
    named = {id(items.names): items.names for side in sides for items in side}  # usually one
    if all(len(set(names.groups)) == 1 for names in named.values()):
        return None
    if all(items.names is names for side in sides for items in side):
        treatment, control = (np.stack([items.values for items in side]) for side in sides)
        return ItemScores(
            aggregate=measured.aggregate,
            treatment=treatment,
            control=control,
            gold=names.gold,
            item_ids=names.ids,
            group_ids=names.groups,
        )
    by_name = [[dict(zip(one.names.ids, one.values.tolist(), strict=True)) for one in side] for side in sides]
    aligned = align_items(
        seeds,
        *(dict(zip(seeds, side, strict=True)) for side in by_name),
        aggregate=measured.aggregate,
        gold=None if names.gold is None else dict(zip(names.ids, names.gold.tolist(), strict=True)),
        groups=dict(zip(names.ids, names.groups, strict=True)),
    )
    _check_named_alike(metric, seeds, (one, other), sides)
    return aligned


def _check_named_alike(
    metric: str, seeds: Sequence[int], arms: Sequence[tuple[str, str]], sides: Sequence[Sequence[RunItems]]
) -> None:
    """Raise ItemsError unless all runs, which hold the same items, agree on the group and gold of each item."""
    runs = {
        f"{arm} on {backbone} at seed {seed}": items.names
        for (arm, backbone), side in zip(arms, sides, strict=True)
        for seed, items in zip(seeds, side, strict=True)
    }
    first, names = next(iter(runs.items()))
    for run, other in runs.items():
        if other is not names and other.descriptions != names.descriptions:
            odd = next(item for item in names.ids if other.descriptions[item] != names.descriptions[item])
            raise ItemsError(
                f"items: {metric} has {odd} with {other.descriptions[odd]} in {run}, "
                f"with {names.descriptions[odd]} in {first}; an item has one group and one gold in all runs"
            )
