"""What the ledger holds of a study's runs: scores by arm and seed, and the arms of a claim paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import ItemScores, PairedSeeds, align_items, pair
from evaluators.tasks.task import Task, metric_names, named
from orchestration.families.registry import family
from orchestration.ledger.entry import of_metric
from orchestration.plan.spread import Sample, SeenPairs
from orchestration.study.run import Run

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Failure, Ledger, Record
    from orchestration.plan.spread import Seen
    from orchestration.study.study import Study


@dataclass(frozen=True)
class StudyRecords:
    """What the ledger holds of the runs that a study's plan asks for."""

    study: Study
    runs: Sequence[Run]
    ledger: Ledger

    @cached_property
    def records(self) -> Mapping[str, Record]:
        """Run id -> record, for every run that is finished."""
        held = self.ledger.entries()
        return {run.id: self.ledger.record(run) for run in self.runs if not run.lacking(held)}

    @cached_property
    def failed(self) -> Mapping[str, Failure]:
        """Run id -> why its last attempt failed."""
        return self.ledger.failed()

    @cached_property
    def _by_place(self) -> Mapping[tuple[str, str, int | None], Run]:
        return {(run.arm, run.backbone, run.seed): run for run in self.runs}

    @cached_property
    def _items(self) -> dict[str, pa.Table]:
        return {}

    @cached_property
    def larger_is_better(self) -> Mapping[str, bool]:
        return metric_names(self.tasks)

    @cached_property
    def tasks(self) -> list[Task[Any, Any]]:
        """What the study is measured on."""
        return named(family(self.study.family).tasks(self.study.data), self.study.evaluate)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed that some run of the plan has, in the order in which seeds are added.

        Where no arm is trained no run has one, and each stands beside all seeds that the study would begin with:
        their deltas are equal, so that the items alone speak.
        """
        present = {run.seed for run in self.runs}
        if present == {None}:
            return self.study.seeds.initial
        return tuple(seed for seed in self.study.seeds.all if seed in present)

    def run(self, arm: str, backbone: str, seed: int) -> Run | None:
        """The run of an arm at a seed; an arm without training has one run for every seed."""
        return self._by_place.get((arm, backbone, seed)) or self._by_place.get((arm, backbone, None))

    def finished(self, arm: str, backbone: str) -> dict[int, str]:
        """seed -> id of the finished run."""
        found = {seed: self.run(arm, backbone, seed) for seed in self.seeds}
        return {seed: run.id for seed, run in found.items() if run is not None and run.id in self.records}

    def values(self, arm: str, backbone: str, metric: str) -> dict[int, float | None]:
        """seed -> score for every seed the plan asks of this arm.

        None for a run that is not finished, nan for one that yielded no such figure: an encoder in which all words
        are equally far apart has no correlation.
        """
        asked = {seed: run for seed in self.seeds if (run := self.run(arm, backbone, seed)) is not None}
        return {seed: self._value(run, metric) if run.id in self.records else None for seed, run in asked.items()}

    def _value(self, run: Run, metric: str) -> float:
        found = self.records[run.id].metrics.get(metric)
        return math.nan if found is None else found.value

    def item_rows(self, run_id: str, metric: str) -> pa.Table:
        """The items of one metric of one run."""
        entry = self.records[run_id].metrics[metric].entry
        if entry not in self._items:
            self._items[entry] = self.ledger.items(entry)
        return of_metric(self._items[entry], metric)


def seen(evidence: StudyRecords) -> Seen:
    """What a plan may know of its claims."""

    def at(claim: Claim) -> SeenPairs:
        return SeenPairs(pairs=paired(evidence, claim), sample=_sample(evidence, claim))

    return at


def _sample(evidence: StudyRecords, claim: Claim) -> Sample | None:
    """Score and number of independent items of one finished run of the claim's arms."""
    for arm in (claim.control, claim.treatment):
        run_id = next(iter(evidence.finished(arm, str(claim.backbone)).values()), None)
        found = None if run_id is None else evidence.records[run_id].metrics.get(claim.metric)
        if run_id is None or found is None or found.aggregate is None:
            continue
        groups = pc.count_distinct(evidence.item_rows(run_id, claim.metric)["group_id"]).as_py()
        if groups >= 2:
            return Sample(arm=arm, score=found.value, groups=groups, aggregate=found.aggregate)
    return None


def paired(evidence: StudyRecords, claim: Claim) -> PairedSeeds:
    """The scores of the claim's arms at every seed that the plan asks of all of them, with their items."""
    scores = [evidence.values(arm, str(claim.backbone), claim.metric) for arm in claim.arms.values()]
    asked = [seed for seed in evidence.seeds if all(seed in by_seed for by_seed in scores)]
    pairs = pair(
        scores[0],
        scores[1],
        seeds=asked,
        larger_is_better=evidence.larger_is_better[claim.metric],
        matched_control=scores[2] if len(scores) > 2 else None,
    )
    if not pairs.seeds:
        return pairs
    matched = _items(evidence, claim, pairs.seeds, claim.matched_control) if claim.matched_control else None
    own = _items(evidence, claim, pairs.seeds, claim.control)
    return replace(pairs, items=own, matched_items=matched)


def _items(evidence: StudyRecords, claim: Claim, seeds: Sequence[int], control: str) -> ItemScores | None:
    """Item-level scores of both arms at these seeds; None where the metric keeps none."""
    ids = {arm: evidence.finished(arm, str(claim.backbone)) for arm in (claim.treatment, control)}
    first = ids[claim.treatment][seeds[0]]
    aggregate = evidence.records[first].metrics[claim.metric].aggregate
    rows = evidence.item_rows(first, claim.metric)
    if aggregate is None or not rows.num_rows:
        return None
    names = rows["item_id"].to_pylist()
    gold = rows["gold"]

    def by_seed(arm: str) -> dict[int, dict[str, float]]:
        tables = {run: evidence.item_rows(run, claim.metric) for run in set(ids[arm].values())}
        as_dict = {
            run: dict(zip(t["item_id"].to_pylist(), t["value"].to_pylist(), strict=True))
            for run, t in tables.items()
        }
        return {seed: as_dict[ids[arm][seed]] for seed in seeds}

    return align_items(
        seeds,
        by_seed(claim.treatment),
        by_seed(control),
        aggregate=aggregate,
        gold=None if gold.null_count else dict(zip(names, gold.to_pylist(), strict=True)),
        groups=dict(zip(names, rows["group_id"].to_pylist(), strict=True)),
    )
