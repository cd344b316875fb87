"""Turns what the ledger holds into findings: pairs the arms by seed and judges every declared comparison."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from evaluators.significance.claims import Claim, ClaimSide, Declared, Joint, sides_of
from evaluators.significance.comparisons import PairedSeeds, one_arm_fails
from evaluators.significance.evidence import DRIFT
from evaluators.significance.judge import group_of, is_asked, judge
from evaluators.significance.paired_items import ItemScores, ItemsError
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import RULE, Verdict
from evaluators.tasks.figures import is_mean
from orchestration.families.contract import ArmSeen
from orchestration.families.registry import as_plain, family
from orchestration.ledger.notes import now
from orchestration.study.errors import StudyError
from orchestration.study.run import TRAINING, Run, canonical
from orchestration.verdicts.declared import Withdrawn, claims_of, declaration_of, nulls_by_group, withdrawn
from orchestration.verdicts.findings import Finding, Findings, RunRow
from orchestration.verdicts.moves import item_gains, moved_most, moves
from orchestration.verdicts.pairing import paired
from orchestration.verdicts.records import StudyRecords, contradiction

if TYPE_CHECKING:
    from orchestration.ledger.claims import Declaration
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study


def find(study: Study, runs: Sequence[Run], ledger: Ledger, *, asked: str | None = None) -> Findings:
    """Judge a study by what the ledger holds now. Writes nothing.

    asked: the name of a claim, or of a part of one. The findings then have only that claim and the runs of its
    arms, and only the claims in its correction are tested. StudyError if no claim has the name, or, naming the
    file, if a run has other items than the other runs, or items that do not give its score.
    """
    records = StudyRecords(study, runs, ledger)
    if asked is None:
        records.records_of(runs)  # all at once, which is quicker across a network
    declaration = declaration_of(records)
    no_longer_made = withdrawn(records, declaration)
    findings = [
        _finding(records, claim, pairs, verdict)
        for claim, pairs, verdict in _judged(records, declaration, no_longer_made, asked)
        if asked in (None, verdict.claim, verdict.part_of)
    ]
    arms = {arm for finding in findings for arm in finding.places}
    shown = [run for run in runs if asked is None or (run.arm, run.backbone) in arms]
    return Findings(
        study=study.name,
        question=study.question,
        family=study.family,
        revision=_revision(study, runs),
        declared=declaration.digest if declaration else "",
        rule=RULE,
        created=now(),
        ledger=ledger.url,
        seeds=records.seeds,
        metrics=records.larger_is_better,
        headlines=tuple(task.headline for task in records.tasks),
        arms={name: as_plain(settings) for name, settings in study.arms.items()},
        data=as_plain(study.data),
        corpus_fingerprint=next((run.corpus_fingerprint for run in runs if run.corpus_fingerprint), ""),
        runs=tuple(_row(records, run) for run in shown),
        findings=tuple(findings),
        environment=_environment(records, shown),
        notes=(*(one.words for one in no_longer_made), *_notes(records, shown)),
    )


def undecided_arms(findings: Findings) -> set[tuple[str, str]]:
    """The (arm, backbone) of all claims that more seeds may still decide."""
    return {place for finding in still_open(findings) for place in finding.places}


def still_open(findings: Findings) -> list[Finding]:
    """The claims that more seeds may still decide."""
    return [finding for finding in findings.findings if _is_open(finding.verdict)]


def arms_to_decide(records: StudyRecords) -> set[tuple[str, str]]:
    """As `undecided_arms` of the findings, without computing the rest of them."""
    declaration = declaration_of(records)
    judged = _judged(records, declaration, withdrawn(records, declaration))
    return {place for claim, _, verdict in judged if _is_open(verdict) for place in sides_of(claim.parts)}


def _is_open(verdict: Verdict) -> bool:
    """Whether more seeds may still decide a claim. A part of a joint claim is never open by itself."""
    closed = verdict.hopeless or DRIFT in verdict.words  # a contradiction stays one
    closed |= verdict.test is None and one_arm_fails(verdict.dropped)  # it waits for runs, not for seeds
    return verdict.as_expected is None and not closed and not verdict.part_of


def _judged(
    records: StudyRecords, declaration: Declaration | None, gone: Sequence[Withdrawn], asked: str | None = None
) -> list[tuple[Declared, PairedSeeds | None, Verdict]]:
    """The study's claims, joint ones before their parts, with their paired scores (None if joint) and verdicts."""
    study, claims = records.study, claims_of(records, declaration)
    if asked is not None:
        claims = _judged_with(study, claims, asked)
    seeds = study.seeds
    sequential = Sequential(n_max=len(seeds.all), start=len(seeds.initial)) if seeds.reserve else None
    try:
        cases = [
            (claim, [replace(paired(records, part), exploratory=is_exploratory) for part in claim.parts])
            for claim, is_exploratory in claims
        ]
        verdicts = judge(cases, sequential=sequential, withdrawn=nulls_by_group(gone), asked=asked)
    except ItemsError as error:
        raise contradiction(records, error) from None
    rows = [row for claim, scores in cases for row in _rows_of(claim, scores) if is_asked(claim, asked)]
    return [(claim, pairs, verdict) for (claim, pairs), verdict in zip(rows, verdicts, strict=True)]


def _judged_with(study: Study, claims: Sequence[tuple[Declared, bool]], asked: str) -> list[tuple[Declared, bool]]:
    """Of (claim, exploratory) those that are corrected together with the claim asked for."""
    groups = {group_of(claim, exploratory) for claim, exploratory in claims if is_asked(claim, asked)}
    if not groups:
        known = dict.fromkeys(claim.claim for claim in study.compare)
        accepted = ", ".join(known) or "none is declared"
        raise StudyError(f"{study.path}: no claim {asked}\n  accepted: {accepted}")
    return [one for one in claims if group_of(*one) in groups]


def _rows_of(claim: Declared, scores: Sequence[PairedSeeds]) -> list[tuple[Declared, PairedSeeds | None]]:
    """The claim and its parts with their scores, in the order in which `judge` returns verdicts."""
    parts = list(zip(claim.parts, scores, strict=True))
    return [(claim, None), *parts] if isinstance(claim, Joint) else [*parts]


def _finding(records: StudyRecords, claim: Declared, pairs: PairedSeeds | None, verdict: Verdict) -> Finding:
    places = tuple(dict.fromkeys(sides_of(claim.parts)))
    if isinstance(claim, Joint) or pairs is None:
        return Finding(verdict=verdict, larger_is_better=True, treatment_runs={}, control_runs={}, places=places)
    items = pairs.items if isinstance(pairs.items, ItemScores) else None
    gains = np.empty(0) if items is None else item_gains(items, pairs.sign)
    return Finding(
        verdict=verdict,
        larger_is_better=pairs.larger_is_better,
        treatment_runs=_runs(records, claim.sides["treatment"]),
        control_runs=_runs(records, claim.sides["control"]),
        places=places,
        items=moved_most(items, gains) if items else (),
        items_better=int((gains > 0).sum()),
        items_worse=int((gains < 0).sum()),
        items_equal=int((gains == 0).sum()),
        scored=_scored(records, claim, verdict) if items else {},
        moves=moves(items, pairs.sign, _counted(records, claim.metric)) if items else None,
        caveats=family(records.study.family).caveats(
            _arms_seen(records, places), records.study.data, records.study.figures_of(claim.metric)
        ),
    )


def _scored(records: StudyRecords, claim: Claim, verdict: Verdict) -> dict[str, tuple[str, ...]]:
    """Side, by its name in the verdict -> the entries that hold its items."""
    entries_of = {}
    for name, role in ((verdict.control, "control"), (verdict.treatment, "treatment")):
        side = claim.sides[role]
        runs = dict.fromkeys(records.finished(side.arm, str(side.backbone)).values())
        metrics = [records.record(run).metrics.get(claim.metric) for run in runs]
        entries_of[name] = tuple(one.entry for one in metrics if one is not None)
    return entries_of


def _counted(records: StudyRecords, metric: str) -> str:
    return next((task.counted for task in records.tasks if metric in task.metrics), "")


def _arms_seen(records: StudyRecords, places: Sequence[tuple[str, str]]) -> list[ArmSeen]:
    """The arms of a claim that have finished runs, with the mean of each metric over these."""
    arms = []
    for name, backbone in places:
        found: dict[str, list[float]] = {}
        for run in dict.fromkeys(records.finished(name, backbone).values()):
            for metric, measured in records.record(run).metrics.items():
                found.setdefault(metric, []).append(measured.value)
        means = {metric: float(np.mean(values)) for metric, values in found.items()}
        if means:
            arms.append(ArmSeen(name=name, settings=records.study.arms[name], means=means))
    return arms


def _runs(records: StudyRecords, side: ClaimSide) -> dict[int, str]:
    """seed -> id of the run of a side; for a gain, "id - id" of its two runs."""
    runs_by_arm = [records.finished(arm, str(side.backbone)) for arm in side.arms]
    seeds = [seed for seed in runs_by_arm[0] if all(seed in runs for runs in runs_by_arm)]
    return {seed: " - ".join(runs[seed] for runs in runs_by_arm) for seed in seeds}


def _row(records: StudyRecords, run: Run) -> RunRow:
    row = RunRow(id=run.id, arm=run.arm, backbone=run.backbone, seed=run.seed, status="missing")
    if run.id not in records.entries:
        failure = records.failed.get(run.id)
        if failure is None:
            return row
        problem = f"{failure.error} ({failure.log})"
        return replace(row, status="failed", attempt=failure.attempt, problem=problem)
    record, (trained, *scored) = records.record(run.id), records.entries[run.id]
    curve = records.ledger.curve_of(trained)
    loss = curve.filter(pc.match_substring_regex(curve["name"], pattern="^loss$"))  # pc.equal imports pandas
    means = {m: v for m in records.study.figures if is_mean(m) and math.isfinite(v := records.value(run, m))}
    return replace(
        row,
        status="finished",
        metrics={name: metric.value for name, metric in record.metrics.items()} | means,
        curve=tuple(zip(loss["step"].to_pylist(), loss["value"].to_pylist(), strict=True)),
        seconds=sum(record.seconds.values()),
        began=record.began,
        training=record.seconds.get(TRAINING),
        cost=record.cost,
        attempt=record.attempt,
        location=record.url,
        entries=(trained, *sorted(scored)),  # runs read from JSON have their tasks in another order
    )


def _environment(records: StudyRecords, runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """Name of a version or a machine property -> its distinct values among the finished runs."""
    found: dict[str, set[str]] = {}
    for record in records.records_of(runs):
        env = {
            **{key: value for key, value in record.env.items() if key != "libraries"},
            **record.env["libraries"],
        }
        for name, value in env.items():
            found.setdefault(name, set()).add(str(value))
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _notes(records: StudyRecords, runs: Sequence[Run]) -> tuple[str, ...]:
    """Notes of the runs, each once: stand-ins for real parts, texts that were cut, missing seals, repeats."""
    finished = records.records_of(runs)
    notes = [f"{name}: {value}" for record in finished for name, value in record.notes.items()]
    unsealed = sum(not record.sealed for record in finished)
    if unsealed:
        notes.append(f"unsealed: {unsealed} runs were recorded before entries had seals")
    notes += [f"repeat: {repeat.words}" for repeat in records.ledger.repeats([run.id for run in runs])]
    return tuple(dict.fromkeys(notes))


def _revision(study: Study, runs: Sequence[Run]) -> str:
    """Digest of the resolved study: its runs and its comparisons."""
    content: dict[str, Any] = {
        "runs": sorted(run.id for run in runs),
        "compare": [claim.said for claim in study.compare],
    }
    return hashlib.sha256(canonical(content)).hexdigest()[:16]
