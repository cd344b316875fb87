"""From the ledger to findings: pair the arms by seed, judge every declared comparison, keep the evidence."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from evaluators.significance.comparisons import Claim, ItemScores, PairedSeeds, align_items, pair
from evaluators.significance.judge import Sequential, Verdict, judge
from evaluators.tasks.task import Task, metric_names, named
from orchestration.families.registry import as_plain, family
from orchestration.plan.spread import Sample, Seen
from orchestration.study.run import Run, canonical
from orchestration.verdicts.findings import Finding, Findings, ItemDelta, RunRow

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestration.ledger.ledger import Failure, Ledger, Record
    from orchestration.plan.spread import Look
    from orchestration.study.blocks import Comparison
    from orchestration.study.study import Study

SHOWN_ITEMS = 12  # largest wins and largest losses kept per comparison


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
        """Every seed that some run of the plan has, in the order in which seeds are added."""
        present = {run.seed for run in self.runs}
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
        table = self._items[entry]
        return table.filter(pc.equal(table["metric"], metric))


def find(study: Study, runs: Sequence[Run], ledger: Ledger) -> Findings:
    """Judge a study by what the ledger holds now. Writes nothing."""
    evidence = StudyRecords(study, runs, ledger)
    claims = claims_of(evidence)
    paired = [(claim, _paired(evidence, claim)) for claim in claims]
    sequential = Sequential(n_max=len(study.seeds.all)) if study.seeds.reserve else None
    verdicts = judge(paired, sequential=sequential)
    findings = [
        _finding(evidence, claim, pairs, verdict) for (claim, pairs), verdict in zip(paired, verdicts, strict=True)
    ]
    declaration = ledger.declared(study.name)
    return Findings(
        study=study.name,
        question=study.question,
        family=study.family,
        revision=_revision(study, runs),
        declared=declaration.digest if declaration else "",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        ledger=ledger.url,
        seeds=evidence.seeds,
        metrics=evidence.larger_is_better,
        headlines=tuple(task.headline for task in evidence.tasks),
        arms={name: as_plain(settings) for name, settings in study.arms.items()},
        data=as_plain(study.data),
        corpus_fingerprint=next((run.corpus_fingerprint for run in runs if run.corpus_fingerprint), ""),
        runs=tuple(_row(evidence, run) for run in runs),
        findings=tuple(findings),
        environment=_environment(evidence),
        notes=_notes(evidence),
    )


def declare(study: Study, runs: Sequence[Run], ledger: Ledger) -> None:
    """Write the study's comparisons down before its first run; a later call changes nothing.

    A claim whose two arms have finished runs already, from another study, is written down as seen.
    """
    evidence = StudyRecords(study, runs, ledger)
    claims = [_declared(comparison) | {"seen": _seen(evidence, comparison)} for comparison in study.compare]
    ledger.declare(study.name, claims)


def claims_of(evidence: StudyRecords) -> list[Claim]:
    """The study's comparisons, one per backbone; those that were not declared before they could be seen are
    exploratory."""
    declaration = evidence.ledger.declared(evidence.study.name)
    seen = (
        {}
        if declaration is None
        else {canonical(_without_seen(c)): bool(c.get("seen")) for c in declaration.claims}
    )
    claims = []
    for comparison, backbone in evidence.study.comparisons:
        if declaration is None:
            exploratory = _seen(evidence, comparison)
        else:
            exploratory = seen.get(canonical(_declared(comparison)), True)
        claims.append(comparison.claim_on(backbone, exploratory=exploratory))
    return claims


def _declared(comparison: Comparison) -> dict[str, Any]:
    """What is written down of a comparison: only what it says, so that new optional fields change no old claim."""
    return {name: value for name, value in asdict(comparison).items() if value is not None}


def _without_seen(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name != "seen"}


def _seen(evidence: StudyRecords, comparison: Comparison) -> bool:
    """Whether some pair of this comparison is finished, so that its outcome could be known."""
    backbones = (comparison.backbone,) if comparison.backbone else evidence.study.backbones
    arms = (comparison.treatment, comparison.control)
    return any(
        set.intersection(*(set(evidence.finished(arm, backbone)) for arm in arms)) for backbone in backbones
    )


def look(evidence: StudyRecords) -> Look:
    """What a plan may know of its comparisons."""

    def at(comparison: Comparison, backbone: str) -> Seen:
        claim = comparison.claim_on(backbone)
        return Seen(pairs=_paired(evidence, claim), sample=_sample(evidence, claim))

    return at


def _sample(evidence: StudyRecords, claim: Claim) -> Sample | None:
    """Score and number of independent items of one finished run of the claim's arms."""
    for arm in (claim.control, claim.treatment):
        run_id = next(iter(evidence.finished(arm, claim.backbone).values()), None)
        found = None if run_id is None else evidence.records[run_id].metrics.get(claim.metric)
        if run_id is None or found is None or found.aggregate is None:
            continue
        groups = pc.count_distinct(evidence.item_rows(run_id, claim.metric)["group_id"]).as_py()
        if groups >= 2:
            return Sample(arm=arm, score=found.value, groups=groups, aggregate=found.aggregate)
    return None


def undecided_arms(findings: Findings) -> set[tuple[str, str]]:
    """(arm, backbone) of every comparison that more seeds may still decide."""
    open_verdicts = [f.verdict for f in findings.findings if f.verdict.verdict == "undecided"]
    arms = ((arm, v.backbone) for v in open_verdicts for arm in (v.treatment, v.control, v.matched_control))
    return {(arm, backbone) for arm, backbone in arms if arm is not None}


def _paired(evidence: StudyRecords, claim: Claim) -> PairedSeeds:
    arms = [claim.treatment, claim.control, *([claim.matched_control] if claim.matched_control else [])]
    scores = [evidence.values(arm, claim.backbone, claim.metric) for arm in arms]
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
    ids = {arm: evidence.finished(arm, claim.backbone) for arm in (claim.treatment, control)}
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


def _finding(evidence: StudyRecords, claim: Claim, pairs: PairedSeeds, verdict: Verdict) -> Finding:
    gains = item_gains(pairs) if pairs.items is not None else np.empty(0)
    order = np.argsort(-gains, kind="stable")
    shown = order if len(order) <= 2 * SHOWN_ITEMS else np.concatenate([order[:SHOWN_ITEMS], order[-SHOWN_ITEMS:]])
    return Finding(
        verdict=verdict,
        larger_is_better=pairs.larger_is_better,
        treatment_runs=evidence.finished(claim.treatment, claim.backbone),
        control_runs=evidence.finished(claim.control, claim.backbone),
        items=tuple(_item_delta(pairs.items, index, gains[index]) for index in shown if pairs.items),
        items_better=int((gains > 0).sum()),
        items_worse=int((gains < 0).sum()),
        items_equal=int((gains == 0).sum()),
    )


def item_gains(pairs: PairedSeeds) -> np.ndarray:
    """How much each item moved in the treatment's favour, averaged over seeds. (M,)

    Mean of items: the difference itself. Labels 0/1: the score's move towards its label. Correlations: how much
    closer the item's rank came to its rank in gold, as a share of all items.
    """
    items = pairs.items
    assert items is not None
    treatment, control = items.treatment.mean(axis=0), items.control.mean(axis=0)
    if items.aggregate in ("spearman", "pearson"):
        from scipy.stats import rankdata

        gold = rankdata(items.gold)
        distance = [np.abs(rankdata(scores) - gold) for scores in (control, treatment)]
        return pairs.sign * (distance[0] - distance[1]) / len(gold)
    towards = 1.0 if items.gold is None else 2 * items.gold - 1
    return pairs.sign * towards * (treatment - control)


def _item_delta(items: ItemScores, index: int, gain: float) -> ItemDelta:
    return ItemDelta(
        item_id=items.item_ids[index],
        group_id=items.group_ids[index],
        treatment=float(items.treatment[:, index].mean()),
        control=float(items.control[:, index].mean()),
        delta=float(gain),
    )


def _row(evidence: StudyRecords, run: Run) -> RunRow:
    row = RunRow(id=run.id, arm=run.arm, backbone=run.backbone, seed=run.seed, status="missing")
    record = evidence.records.get(run.id)
    if record is None:
        failure = evidence.failed.get(run.id)
        if failure is None:
            return row
        problem = f"{failure.error} ({failure.log})"
        return replace(row, status="failed", attempt=failure.attempt, problem=problem)
    curve = evidence.ledger.curve(run)
    loss = curve.filter(pc.equal(curve["name"], "loss"))
    return replace(
        row,
        status="finished",
        metrics={name: metric.value for name, metric in record.metrics.items()},
        curve=tuple(zip(loss["step"].to_pylist(), loss["value"].to_pylist(), strict=True)),
        seconds=sum(record.seconds.values()),
        attempt=record.attempt,
        location=record.url,
        entries=evidence.ledger.entries_of(run),
    )


def _environment(evidence: StudyRecords) -> dict[str, tuple[str, ...]]:
    """Each version and machine with the distinct values found among the finished runs."""
    found: dict[str, set[str]] = {}
    for record in evidence.records.values():
        env = {
            **{key: value for key, value in record.env.items() if key != "libraries"},
            **record.env["libraries"],
        }
        for name, value in env.items():
            found.setdefault(name, set()).add(str(value))
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _notes(evidence: StudyRecords) -> tuple[str, ...]:
    """What the runs say of themselves, each once: stand-ins for real parts, texts that were cut, missing seals."""
    said = [f"{name}: {value}" for record in evidence.records.values() for name, value in record.notes.items()]
    unsealed = sum(not record.sealed for record in evidence.records.values())
    if unsealed:
        said.append(f"unsealed: {unsealed} runs were recorded before entries had seals")
    return tuple(dict.fromkeys(said))


def _revision(study: Study, runs: Sequence[Run]) -> str:
    """Digest of the study as resolved: its runs and its comparisons."""
    content: dict[str, Any] = {
        "runs": sorted(run.id for run in runs),
        "compare": [asdict(comparison) for comparison in study.compare],
    }
    return hashlib.sha256(canonical(content)).hexdigest()[:16]
