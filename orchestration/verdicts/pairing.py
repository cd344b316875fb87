"""The arms of a claim paired by seed: their scores, and the items behind their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.paired_items import Items, ItemScores, ItemsError, ItemSum, align_items, rarest
from orchestration.plan.spread import Sample, SeenPairs
from orchestration.verdicts.records import contradiction

if TYPE_CHECKING:
    from evaluators.metrics.scores import Aggregate
    from evaluators.significance.claims import Claim, ClaimSide
    from orchestration.plan.spread import Seen
    from orchestration.verdicts.records import ItemNames, RunItems, StudyRecords


def seen(records: StudyRecords) -> Seen:
    """What a plan may know of its claims."""

    def at(claim: Claim) -> SeenPairs:
        try:
            return SeenPairs(pairs=paired(records, claim), sample=_sample(records, claim))
        except ItemsError as error:
            raise contradiction(records, error) from None

    return at


def _sample(records: StudyRecords, claim: Claim) -> Sample | None:
    """Score and number of independent items of one finished run of the claim's sides; not of a mean or a gain."""
    for side in (claim.sides["control"], claim.sides["treatment"]):
        run_id = next(iter(records.finished(side.arm, str(side.backbone)).values()), None)
        found = None if run_id is None else records.measured(run_id, claim.metric)
        if run_id is None or found is None or found.aggregate is None or side.over is not None:
            continue
        groups, fewest = _independent(found.aggregate, records.items(run_id, claim.metric).names)
        if fewest >= 2:
            return Sample(arm=side.arm, score=found.value, groups=groups, rarest=fewest, aggregate=found.aggregate)
    return None


def _independent(aggregate: Aggregate, names: ItemNames) -> tuple[int, int]:
    """How many independent items a figure has, and how many of the rarer class.

    Of a figure by class the first is at most what it would be if the other class were as rare.
    """
    fewest = rarest(aggregate, names.gold, np.array(names.groups))
    return min(len(set(names.groups)), 2 * fewest), fewest


def paired(records: StudyRecords, claim: Claim) -> PairedSeeds:
    """The scores of the claim's sides at every seed that the plan asks of all of them, with their items."""
    scores = {role: _scores(records, side, claim.metric) for role, side in claim.sides.items()}
    asked = sorted(seed for seed in records.standing if all(seed in by_seed for by_seed in scores.values()))
    figures = records.study.figures_of(claim.metric)
    pairs = pair(
        scores["treatment"],
        scores["control"],
        seeds=asked,
        larger_is_better=records.larger_is_better[claim.metric],
        matched_control=scores.get("matched_control"),
    )
    if not pairs.seeds:
        return pairs
    matched = _items_once(records, claim, pairs.seeds, "matched_control") if claim.matched_control else None
    return replace(
        pairs,
        items=_items_once(records, claim, pairs.seeds, "control"),
        matched_items=matched,
        tasks=figures if len(figures) > 1 else (),
    )


def _scores(records: StudyRecords, side: ClaimSide, metric: str) -> dict[int, float | None]:
    """seed -> figure of a side: of its arm, or what that gains over another at the same seed."""
    own = records.values(side.arm, str(side.backbone), metric)
    if side.over is None:
        return own
    base = records.values(side.over, str(side.backbone), metric)
    return {seed: _less(own[seed], base[seed]) for seed in own if seed in base}


def _less(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left - right


def _items_once(records: StudyRecords, claim: Claim, seeds: Sequence[int], control: str) -> Items | None:
    """As `_items`; while the runs are the same it is the same object, of which nothing need be computed again."""
    sides = claim.sides["treatment"], claim.sides[control]
    places = [(arm, str(side.backbone)) for side in sides for arm in side.arms]
    runs = tuple(records.finished(*place)[seed] for place in places for seed in seeds)
    known = records.reads.compared.get((claim.metric, *sides))
    if known is None or known[0] != runs:
        known = runs, _items(records, claim, seeds, control)
        records.reads.compared[claim.metric, *sides] = known
    return known[1]


def _items(records: StudyRecords, claim: Claim, seeds: Sequence[int], control: str) -> Items | None:
    """The items behind the difference of treatment and control at these seeds; None where a figure keeps none.

    A mean over K tasks is a sum over tasks with weights 1/K, a gain less a gain one with weights 1 and -1.
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
        for weight, one, other in contrasts:
            found = _item_scores(records, metric, seeds, one, other)
            if found is None:
                return None
            terms.append((weight / len(figures), found))
    return terms[0][1] if len(terms) == 1 else ItemSum(tuple(terms))


def _item_scores(
    records: StudyRecords, metric: str, seeds: Sequence[int], one: tuple[str, str], other: tuple[str, str]
) -> ItemScores | None:
    """Item-level scores of two arms, each (arm, backbone), at these seeds; None where the metric keeps none, and
    where all of them are of one group, which tells as little of others."""
    runs = [records.finished(arm, backbone) for arm, backbone in (one, other)]
    first = runs[0][seeds[0]]
    measured, names = records.measured(first, metric), records.items(first, metric).names
    if measured is None or measured.aggregate is None or not names.ids:
        return None
    sides = [[records.items(of_arm[seed], metric) for seed in seeds] for of_arm in runs]
    named = {id(items.names): items.names for side in sides for items in side}  # one, as a rule
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
    """ItemsError unless these runs, which hold the same items, put each into one group and give it one gold."""
    runs = {
        f"{arm} on {backbone} at seed {seed}": items.names
        for (arm, backbone), side in zip(arms, sides, strict=True)
        for seed, items in zip(seeds, side, strict=True)
    }
    first, names = next(iter(runs.items()))
    for run, other in runs.items():
        if other is not names and other.told != names.told:
            odd = next(item for item in names.ids if other.told[item] != names.told[item])
            raise ItemsError(
                f"items: {metric} has {odd} with {other.told[odd]} in {run}, with {names.told[odd]} in {first}; "
                "an item has one group and one gold in all runs"
            )
