"""The entries of a study, a run and a comparison for MLflow: plain data, no client.

An entry has a key, which finds it in MLflow again, and a digest of its content, which shows that it is unchanged
before it is built.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from evaluators.significance.decision import Word
from orchestration.report import drawing, plots
from orchestration.report.forms import markdown, report_json
from orchestration.report.html import html
from orchestration.report.markup import marked_down
from orchestration.report.tables import anchor, arm_cells, claim_cells, claim_head, difference, known
from orchestration.study.run import canonical
from orchestration.tracking.pages import PLACE

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from orchestration.verdicts.findings import Finding, Findings, RunRow

LAYOUT = 3  # raised when the same content gives another entry
LONGEST = 500  # characters of a parameter; spec.json has longer ones
LONGEST_KEY = 240  # of the name of a metric or a parameter: MLflow takes 250, and `seconds/` may stand before it
LONGEST_NOTE = 7400  # MLflow cuts a tag at 8000; this leaves room for pictures
CURVE_POINTS = 100  # of each curve; the ledger has all of them
VERDICT_TAGS = ("claim", "treatment", "control", "backbone", "metric", "expect", "margin", "verdict", "words",
                "test", "scope", "as_expected", "exploratory", "part_of", "family_digest")  # fmt: skip
FIGURES = ("delta_mean", "delta_sd", "ci_low", "ci_high", "p", "tost_p", "effect_dz", "hedges_g", "n_seeds")

T = TypeVar("T")
STUDY_KEY = "study"  # earlier: study/REVISION, a parent for each revision
COMPARISONS = "comparison/"  # prefix of their keys

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]  # head and rows


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One MLflow run, whole.

    points: (metric, value, step), final. latest: metrics that may change as seeds are added, logged at
    latest_step. MLflow keeps tags and metrics that a later entry omits, so tags and latest hold every name, "" or
    NaN if unknown. evidence: what the entry rests on, such as a run's ledger entries or a comparison's runs.
    MLflow cannot remove points, so an entry whose evidence lacks something logged earlier starts a new MLflow run.
    files: name -> bytes. tables: shown by MLflow as tables. model: the ledger and run of an encoder that can be
    loaded. began, ended: Unix time, now if None.
    note: the description, followed by pictures (names of files) and a link that compares a metric of several runs.
    compares: that metric, and the keys of those runs.
    """

    name: str
    status: str = "FINISHED"
    began: float | None = None
    ended: float | None = None
    note: str = ""
    pictures: Sequence[str] = ()
    compares: tuple[str, Sequence[str]] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[tuple[str, float, int]] = ()
    latest: Mapping[str, float] = field(default_factory=dict)
    latest_step: int = 0
    evidence: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    model: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An entry that is not built yet. place: its sort key in the table, which another arm or claim may change."""

    key: str
    kind: str  # "study", "run" or "comparison"; "search" or "trial"
    digest: str
    build: Callable[[], Entry]
    place: str = ""


def planned(findings: Findings, ledger: Ledger) -> list[Planned]:
    """An entry for every run that finished or failed and for every comparison. Reads no file yet."""
    runs = [
        Planned(
            key=_run_key(row.arm, row.id),
            kind="run",
            digest=_run_digest(row),
            build=partial(_run_entry, findings, row, ledger),
            place=f"2 {number:05d}",
        )
        for number, row in enumerate(findings.runs)
        if row.status != "missing"
    ]
    ids = [finding.verdict.id for finding in findings.findings]
    repeated = {claim for claim in ids if ids.count(claim) > 1}  # equal claims, told apart by their names
    comparisons = [
        Planned(
            key=_comparison_key(verdict) + (f"/{verdict.claim}" if verdict.id in repeated else ""),
            kind="comparison",
            digest=_comparison_digest(findings, finding),
            build=partial(_comparison_entry, findings, finding),
            place=f"1 {number:04d}",
        )
        for number, finding in enumerate(findings.findings)
        for verdict in [finding.verdict]
    ]
    return runs + comparisons


def _run_key(arm: str, run: str) -> str:
    return f"run/{arm}/{run}"


def _comparison_key(verdict: Verdict) -> str:
    return f"{COMPARISONS}{verdict.id}/{verdict.treatment}-{verdict.control}/{verdict.expect}/{verdict.margin}"


def planned_study(findings: Findings, links: Mapping[str, str]) -> Planned:
    """The parent entry of a study. links: run id -> its page in MLflow."""
    return Planned(
        key=STUDY_KEY,
        kind="study",
        digest=digest_of(
            findings.revision,
            *map(_run_digest, findings.runs),
            *(_comparison_digest(findings, finding) for finding in findings.findings),
            findings.all_notes,
            {name: str(value) for name, value in findings.arms.items()},
        ),
        build=partial(_study_entry, findings, links),
    )


def _run_digest(row: RunRow) -> str:
    return digest_of(row.id, row.arm, row.status, _run_evidence(row))


def _run_evidence(row: RunRow) -> dict[str, str]:
    """The attempt and the ledger entries of a run: a new task adds one, a new version of a task replaces one."""
    return {"attempt": str(row.attempt), **dict.fromkeys(row.entries, "entry")}


def _comparison_digest(findings: Findings, finding: Finding) -> str:
    runs = (finding.treatment_runs, finding.control_runs)  # with runs whose pair is incomplete
    return digest_of(
        finding.verdict.to_dict(), *runs, _comparison_evidence(findings, finding), finding.shown_moves.counted
    )


def _comparison_evidence(findings: Findings, finding: Finding) -> dict[str, str]:
    """The runs and the step of every pair."""
    steps, evidence = _steps(findings), {}
    for seed in (int(pair["seed"]) for pair in finding.verdict.per_seed):
        evidence[str(seed)] = f"{_short(finding.treatment_runs[seed])}-{_short(finding.control_runs[seed])}"
        evidence[f"step of {seed}"] = str(steps[seed])
    return evidence


def _steps(findings: Findings) -> dict[int, int]:
    """The step of each seed: its rank, which changes when a smaller seed is added."""
    return {seed: rank for rank, seed in enumerate(findings.seeds)}


def metric_name(name: str) -> str:
    """A metric's name in the characters MLflow allows: t2d/recall@10 is t2d/recall_at_10."""
    return _key(name.replace("@", "_at_"))


def _key(name: str) -> str:
    """The name in the characters and the length that MLflow allows; a digest keeps long ones apart."""
    plain = re.sub(r"[^\w\-. :/]", "_", name)
    if len(plain) <= LONGEST_KEY:
        return plain
    return f"{plain[: LONGEST_KEY - 9]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def claimed_metrics(findings: Findings) -> list[str]:
    """The metrics that claims are about, as MLflow names them, in the order of the claims."""
    return list(dict.fromkeys(metric_name(finding.verdict.metric) for finding in findings.findings))


def thin(points: Sequence[T]) -> list[T]:
    """At most `CURVE_POINTS` of the points, evenly spaced, with the first and the last."""
    if len(points) <= CURVE_POINTS:
        return list(points)
    return [points[round(place * (len(points) - 1) / (CURVE_POINTS - 1))] for place in range(CURVE_POINTS)]


def _run_entry(findings: Findings, row: RunRow, ledger: Ledger) -> Entry:
    identity = {"arm": row.arm, "backbone": row.backbone, "seed": "none" if row.seed is None else str(row.seed)}
    tags = {
        **identity,
        "family": findings.family,
        "study": findings.study,
        "ledger_id": row.id,
        "selection": str(row.selection).lower(),
    }
    name = f"{row.arm} {'untrained' if row.seed is None else f'seed {row.seed}'}"
    if row.status == "failed":
        return Entry(
            name=name, status="FAILED", tags={**tags, "problem": row.problem}, note=marked_down(row.problem)
        )
    record = ledger.record_of(row.entries)
    figures = {metric_name(metric): score.value for metric, score in record.metrics.items()}
    figures |= {f"seconds/{metric_name(part)}": value for part, value in record.seconds.items()}
    figures |= {f"cost/{metric_name(part)}": value for part, value in record.cost.items()}
    curve = ledger.curve_of(row.entries[0]).to_pydict()
    curves: dict[str, list[tuple[str, float, int]]] = {}
    for curve_name, value, step in zip(curve["name"], curve["value"], curve["step"], strict=True):
        curves.setdefault(curve_name, []).append((f"train/{metric_name(curve_name)}", value, step))
    files = {"spec": record.run.to_dict(), "env": record.env, "notes": record.notes}
    return Entry(
        name=name,
        began=record.began,
        ended=None if record.began is None else record.began + sum(record.seconds.values()),
        tags={**tags, "problem": "", "ledger": row.location},
        note=f"In the ledger: `{row.location}`",
        params=_params({**identity, **record.run.settings, "precision": record.run.precision}),
        points=[*((n, v, 0) for n, v in figures.items()), *(p for line in curves.values() for p in thin(line))],
        evidence=_run_evidence(row),
        dataset=_dataset(record),
        files={f"{name}.json": _json(content) for name, content in files.items()},
        model={"ledger": ledger.url, "run": row.entries[0]},
    )


def _dataset(record: Record) -> dict[str, str]:
    """The corpus as MLflow's input: its name, fingerprint and the settings it was built from."""
    return {
        "name": f"{record.run.family} corpus",
        "digest": record.run.corpus_fingerprint[:36] or "none",
        "source": canonical(dict(record.run.data)).decode(),
        "context": "evaluation" if record.run.seed is None else "training",
    }


def _params(settings: Mapping[str, Any]) -> dict[str, str]:
    texts = {_key(name): str(value) for name, value in settings.items()}
    return {name: text if len(text) <= LONGEST else "long, see spec.json" for name, text in texts.items()}


def _comparison_entry(findings: Findings, finding: Finding) -> Entry:
    verdict, steps = finding.verdict, _steps(findings)
    summary = {name: getattr(verdict, name) for name in FIGURES} | {
        "p_holm": None if verdict.exploratory else verdict.p_adjusted,
        "p_bh": verdict.p_adjusted if verdict.exploratory else None,
        "sign_agreement": None if verdict.seedless else verdict.sign_agreement,
        "e_value": verdict.e_values[-1] if verdict.e_values else None,
    }
    own = f"{verdict.id}/"  # prefix of its parts' ids, and of some other claims'
    parts = [part for part in findings.findings if part.verdict.part_of == verdict.claim]
    shown = (finding, *(part for part in parts if part.verdict.id.startswith(own)))
    pictures = {"forest.png": drawing.png(plots.forest(replace(findings, findings=shown)))}
    if verdict.per_seed:
        pictures["seeds.png"] = plots.every(findings)[f"seeds-{anchor(verdict)}"].png
    seeds = [tuple(pair[name] for name in ("seed", "control", "treatment", "delta")) for pair in verdict.per_seed]
    items = [(i.item_id, i.control, i.treatment, i.delta) for i in finding.shown_moves.items]
    arms = (verdict.control, verdict.treatment)
    return Entry(
        name=f"{verdict.claim}: {verdict.treatment} - {verdict.control}",
        tags={
            **{name: "" if (value := getattr(verdict, name)) is None else str(value) for name in VERDICT_TAGS},
            "difference": difference(verdict),
            "study": findings.study,
            "family": findings.family,
        },
        note=f"**{marked_down(verdict.words)}**\n\n{marked_down(verdict.sentence)}",
        pictures=("forest.png",),
        compares=(metric_name(verdict.metric), _compared(findings, finding)) if verdict.per_seed else None,
        points=[("delta", delta, steps[int(seed)]) for seed, *_, delta in seeds],
        latest={name: float(value) if known(value) else math.nan for name, value in summary.items()},
        latest_step=verdict.n_seeds,
        evidence=_comparison_evidence(findings, finding),
        files={"comparison.json": _json(verdict.to_dict()), **pictures},
        tables={
            "seeds.json": (("seed", *arms, "difference"), seeds),
            **({"items.json": (("item", *arms, "gain"), items)} if items else {}),
        },
    )


def _compared(findings: Findings, finding: Finding) -> list[str]:
    """The keys of a claim's runs, the control's first, each once."""
    arms = {row.id: row.arm for row in findings.runs}
    sides = (finding.control_runs, finding.treatment_runs)
    ids = [run for side in sides for runs in side.values() for run in runs.split(" - ")]
    return [_run_key(arms[run], run) for run in dict.fromkeys(ids) if run in arms]


def _short(runs: str) -> str:
    """The first 8 digits of a run's id, or of both ids of a gain."""
    return "-".join(run[:8] for run in runs.split(" - "))


def _study_entry(findings: Findings, links: Mapping[str, str]) -> Entry:
    drawn = plots.every(findings)
    page = html(findings, drawn, links)
    shown = [name for name in ("forest", "curves", "layers") if name in drawn and not drawn[name].tall]
    overview = {f"{name}.png": drawn[name].png for name in shown}
    states = {status: len(findings.with_status(status)) for status in ("finished", "failed", "missing")}
    words = [finding.verdict.verdict for finding in findings.findings]
    note = markdown(findings)
    if len(note) > LONGEST_NOTE:
        note = note[:LONGEST_NOTE].rsplit("\n", 1)[0] + "\n\nCut here; all of it is in report.html."
    head, *rows = arm_cells(findings)
    ends = [row.began + (row.seconds or 0.0) for row in findings.runs if row.began is not None]
    return Entry(
        name=findings.study,
        ended=max(ends, default=None),
        status="FAILED" if states["failed"] else "RUNNING" if states["missing"] else "FINISHED",
        tags={
            "study": findings.study,
            "family": findings.family,
            "revision": findings.revision,
            "declared": findings.declared,
            "ledger": findings.ledger,
            PLACE: "0",
            "verdict": ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)),
        },
        note=note,
        pictures=("forest.png",) if "forest.png" in overview else (),
        latest={
            **{f"runs/{status}": float(count) for status, count in states.items()},
            **{f"verdicts/{word}": float(words.count(word)) for word in get_args(Word)},
        },
        latest_step=states["finished"],
        files={"report.html": page.encode(), "report.json": report_json(findings).encode(), **overview},
        tables={
            "arms.json": (head, rows),
            **({"claims.json": (claim_head([findings]), claim_cells(findings))} if words else {}),
        },
    )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n").encode()


def digest_of(*content: Any) -> str:
    return hashlib.sha256(_json([LAYOUT, *content])).hexdigest()[:16]
