"""A finished study with known effects, small enough to read: a real ledger, and the findings that rest on it.

Three arms on 8 seeds. B1 gains 0.10 over the untrained B0 in recall, with seed noise of 0.01; B1-noHN equals B1 in
recall and loses 0.05 in the stress test. M1 lacks a run that failed and one that never ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.metrics.scores import Score
from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.judge import judge
from evaluators.significance.verdict import Verdict
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Result, Run
from orchestration.verdicts.findings import Finding, Findings, ItemDelta, RunRow
from tests.results import put, results
from trainers.engine.world import Progress

BACKBONE = "tiny"
RECALL, STRESS, SPREAD = "t2d/recall@10", "stress/negate/auc", "geometry/anisotropy"
METRICS = {RECALL: True, STRESS: True, SPREAD: False}
ARMS: dict[str, dict[str, Any]] = {
    "B0": {"train": False, "readout": "mean", "hard_negatives": False, "steps": 0},
    "B1": {"train": True, "readout": "mean", "hard_negatives": True, "steps": 60},
    "B1-noHN": {"train": True, "readout": "mean", "hard_negatives": False, "steps": 60},
    "M1": {"train": True, "readout": "weighted", "hard_negatives": True, "steps": 60},
}
EFFECT = {
    "B0": {RECALL: 0.50, STRESS: 0.60, SPREAD: 0.30},
    "B1": {RECALL: 0.60, STRESS: 0.70, SPREAD: 0.34},
    "B1-noHN": {RECALL: 0.60, STRESS: 0.65, SPREAD: 0.34},
    "M1": {RECALL: 0.605, STRESS: 0.70, SPREAD: 0.34},
}
CLAIMS = (
    Claim(claim="H1", treatment="B1", control="B0", metric=RECALL, expect="better", backbone=BACKBONE),
    Claim(claim="H3a", treatment="B1", control="B1-noHN", metric=STRESS, expect="better", backbone=BACKBONE),
    Claim(
        claim="H3b",
        treatment="B1",
        control="B1-noHN",
        metric=RECALL,
        expect="equivalent",
        margin=0.03,
        backbone=BACKBONE,
    ),
    Claim(claim="H2", treatment="M1", control="B1", metric=RECALL, expect="better", backbone=BACKBONE),
)
LATE = Claim(claim="X1", treatment="B1", control="B0", metric=SPREAD, expect="better", backbone=BACKBONE)


def make_run(arm: str, seed: int | None) -> Run:
    return Run(
        family="concept",
        arm=arm,
        backbone=BACKBONE,
        seed=seed,
        settings=ARMS[arm],
        data={"lexicons": ["wordnet"], "split": "in-domain"},
        tasks={"t2d": "r1", "stress": "r2", "geometry": "r3"},
        defining=ARMS[arm],
        backbone_fingerprint="b" * 16,
        corpus_fingerprint="4f1c0000a1b2c3d4",
    )


def make_results(run: Run, save_model: Callable[[Path], None] | None = None) -> Iterator[Result]:
    """Scores with the arm's effect; the noise is the seed's own, shared in part by all arms."""
    seed = 0 if run.seed is None else run.seed
    noise = np.random.default_rng([seed, sorted(ARMS).index(run.arm)]).normal(0, 0.004, len(METRICS))
    noise += np.random.default_rng(seed).normal(0, 0.006, len(METRICS))
    if run.seed is None:
        noise *= 0
    names = [f"wordnet:word{number:02d}.n.01" for number in range(40)]
    values = {metric: EFFECT[run.arm][metric] + float(shift) for metric, shift in zip(METRICS, noise, strict=True)}
    items = np.clip(values[RECALL] + np.linspace(-0.2, 0.2, len(names)) * (1 if run.arm == "B1" else -1), 0, 1)
    recall = Score(metric=RECALL, value=values[RECALL], aggregate="mean", item_ids=names, values=items)
    others = [
        Score(metric=name, value=values[name], larger_is_better=METRICS[name])
        for name in METRICS
        if name != RECALL
    ]
    steps = ARMS[run.arm]["steps"]
    curve = [
        Progress(step=s, steps=steps, loss=2 * math.exp(-s / 20) + 0.5 + 0.01 * seed, terms={"hince": 1.0})
        for s in range(steps)
    ]
    seconds = {"train": 2.5, "evaluate": 0.5}
    return results(run, [recall, *others], curve=curve, seconds=seconds, save_model=save_model)


def fill(ledger: Ledger, runs: Sequence[Run], save_model: Callable[[Path], None] | None = None) -> None:
    """Finish these runs as a lane and the driver would."""
    for run in runs:
        if not ledger.holds(run):
            put(ledger, run, make_results(run, save_model))


def planned(seeds: int) -> list[Run]:
    trained = [arm for arm in ARMS if ARMS[arm]["train"]]
    return [make_run("B0", None), *(make_run(arm, seed) for arm in trained for seed in range(seeds))]


def lost(run: Run) -> str:
    """Two runs of M1 never finish."""
    return {("M1", 4): "failed", ("M1", 7): "missing"}.get((run.arm, run.seed or 0), "")


def findings_of(ledger: Ledger, seeds: int = 8, claims: Sequence[Claim] = (*CLAIMS, LATE)) -> Findings:
    """Fill the ledger with `seeds` seeds and judge what it holds."""
    runs = planned(seeds)
    fill(ledger, [run for run in runs if not lost(run)])
    rows = tuple(_row(ledger, run) for run in runs)
    paired = [(claim, _paired(rows, claim, seeds)) for claim in claims]
    verdicts = judge(paired)
    return Findings(
        study="concept-hypotheses",
        question="Do hard negatives calibrate a concept encoder without improving its ranking?",
        family="concept",
        revision="9f31c2ab77e01d4c",
        declared="44aa01cd9e0b7712",
        rule=2,
        created="2026-11-21T02:51:00+00:00",
        ledger=ledger.url,
        seeds=tuple(range(seeds)),
        metrics=METRICS,
        headlines=tuple(METRICS),
        arms=ARMS,
        data={"lexicons": ["wordnet"], "split": "in-domain"},
        corpus_fingerprint="4f1c0000a1b2c3d4",
        runs=rows,
        findings=tuple(_finding(rows, verdict) for verdict in verdicts),
        environment={"python": ("3.11.9",), "cpu": ("Xeon 8481C", "Xeon 6430")},
        notes=("corpus: a stand-in of 40 concepts",),
    )


def _row(ledger: Ledger, run: Run) -> RunRow:
    place: Mapping[str, Any] = {"id": run.id, "arm": run.arm, "backbone": run.backbone, "seed": run.seed}
    if lost(run) == "failed":
        return RunRow(**place, status="failed", attempt=2, problem="loss is nan at step 12 (hince)")
    if lost(run):
        return RunRow(**place, status="missing")
    record, curve = ledger.record(run), ledger.curve(run).to_pylist()
    return RunRow(
        **place,
        metrics={name: metric.value for name, metric in record.metrics.items()},
        curve=tuple((point["step"], point["value"]) for point in curve if point["name"] == "loss"),
        seconds=sum(record.seconds.values()),
        began=record.began,
        training=record.seconds.get("train"),
        attempt=record.attempt,
        location=record.url,
        entries=ledger.entries_of(run),
    )


def _paired(rows: Sequence[RunRow], claim: Claim, seeds: int) -> PairedSeeds:
    arms = [
        _by_seed(rows, arm, seeds, lambda row: row.metrics.get(claim.metric))
        for arm in (claim.treatment, claim.control)
    ]
    pairs = pair(arms[0], arms[1], seeds=range(seeds), larger_is_better=METRICS[claim.metric])
    return replace(pairs, exploratory=claim == LATE)


def _by_seed(rows: Sequence[RunRow], arm: str, seeds: int, what: Callable[[RunRow], Any]) -> dict[int, Any]:
    found = {row.seed: what(row) for row in rows if row.arm == arm}
    return {seed: found.get(seed, found.get(None)) for seed in range(seeds)}


def _finding(rows: Sequence[RunRow], verdict: Verdict) -> Finding:
    ids = [
        {s: run for s, run in _by_seed(rows, arm, max(99, len(rows)), lambda row: row.id).items() if run}
        for arm in (verdict.treatment, verdict.control)
    ]
    deltas = np.linspace(0.9, -0.9, 19) if verdict.metric == RECALL else ()
    items = tuple(
        ItemDelta(
            item_id=f"wordnet:word{k:02d}.n.01",
            group_id=str(k),
            treatment=0.5 + d / 2,
            control=0.5 - d / 2,
            delta=float(d),
        )
        for k, d in enumerate(deltas)
    )
    counts = {"items_better": 412, "items_worse": 61, "items_equal": 1527} if items else {}
    return Finding(
        verdict=verdict,
        larger_is_better=verdict.larger_is_better,
        treatment_runs=ids[0],
        control_runs=ids[1],
        places=tuple((arm, BACKBONE) for arm in (verdict.treatment, verdict.control)),
        items=items,
        **counts,
    )
