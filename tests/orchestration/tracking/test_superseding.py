"""What becomes of MLflow's runs as a study grows: which go on, and which are put aside. Real MLflow throughout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.tracking import write
from orchestration.tracking.entries import Entry, Planned, metric_name
from orchestration.tracking.sync import Tree, mirror, sync
from orchestration.verdicts.findings import Findings
from tests.finished_study import CLAIMS, METRICS, fill, findings_of, make_results, make_run
from tests.mirror import STUDY, client, of_kind, points, search

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # MLflow's own affair


def test_more_seeds_extend_a_comparison(uri: str, tmp_path: Path) -> None:
    """The delta of every seed once; the mean as it stood at 4 and at 6 seeds."""
    ledger = Ledger(tmp_path / "ledger")
    sync(replace(findings_of(ledger, 4, CLAIMS[:1]), revision="4"), ledger, uri)
    grown = replace(findings_of(ledger, 6, CLAIMS[:1]), revision="6")
    assert sync(grown, ledger, uri).problem == ""
    (comparison,) = of_kind(uri, "comparison")
    deltas = client(uri).get_metric_history(comparison.info.run_id, "delta")
    assert [point.step for point in deltas] == [0, 1, 2, 3, 4, 5]
    means = client(uri).get_metric_history(comparison.info.run_id, "delta_mean")
    assert [point.step for point in means] == [4, 6]
    assert comparison.data.metrics["delta_mean"] == grown.findings[0].verdict.delta_mean
    (parent,) = of_kind(uri, "study")  # kept and updated, so that none is left without runs
    assert parent.data.tags["revision"] == "6"
    assert {run.data.tags["mlflow.parentRunId"] for run in of_kind(uri, "run")} == {parent.info.run_id}


def test_claims_that_say_the_same_are_two_comparisons(uri: str, tmp_path: Path) -> None:
    """In two groups, say, or under two names: neither writes over the other, and syncing again adds nothing."""
    ledger = Ledger(tmp_path / "ledger")
    twins = (CLAIMS[0], replace(CLAIMS[0], claim="H1b"), replace(CLAIMS[0], claim="H1c", family="ranking"))
    findings = findings_of(ledger, 3, twins)
    assert sync(findings, ledger, uri).new == 1 + 10 + 3
    assert sync(findings, ledger, uri).new == 0
    names = [run.data.tags["claim"] for run in of_kind(uri, "comparison")]
    assert sorted(names) == ["H1", "H1b", "H1c"]


def test_other_evidence_starts_a_new_comparison(small: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = small
    sync(findings, ledger, uri)
    first = findings.findings[0]
    other = replace(first, treatment_runs={seed: f"{seed:016x}" for seed in first.treatment_runs})
    changed = replace(findings, findings=(other,), revision="other")
    sync(changed, ledger, uri)
    verdicts = [run.data.tags["verdict"] for run in of_kind(uri, "comparison")]
    assert sorted(verdicts) == ["better", "superseded"]


@pytest.mark.parametrize("edited", ["{bad", "null", "[1]", "", "[" * 4000])
def test_evidence_that_cannot_be_read_starts_a_new_comparison(
    small: tuple[Ledger, Findings], uri: str, edited: str
) -> None:
    """A person may edit any tag on MLflow's pages."""
    ledger, findings = small
    sync(findings, ledger, uri)
    (comparison,), (parent,) = of_kind(uri, "comparison"), of_kind(uri, "study")
    client(uri).set_tag(comparison.info.run_id, "semray.evidence", edited)
    for run in (comparison, parent):
        client(uri).set_tag(run.info.run_id, "semray.digest", "of before")
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new) == ("", 1)
    verdicts = {run.info.run_id: run.data.tags["verdict"] for run in of_kind(uri, "comparison")}
    assert verdicts.pop(comparison.info.run_id) == "superseded"
    assert len(verdicts) == 1


def test_a_task_that_is_evaluated_later_reaches_every_run(small: tuple[Ledger, Findings], uri: str) -> None:
    """Its entries beside those of before: the same MLflow runs get figures more, and no point of before twice."""
    ledger, findings = small
    whole = replace(findings, findings=())
    few = replace(whole, runs=tuple(replace(row, entries=row.entries[:2]) for row in whole.runs))
    sync(few, ledger, uri)
    before = {run.info.run_id: len(run.data.metrics) for run in of_kind(uri, "run")}
    done = sync(whole, ledger, uri)
    assert (done.new, done.updated) == (0, 1 + 10)
    for run in of_kind(uri, "run"):
        assert len(run.data.metrics) > before[run.info.run_id]
        assert {metric_name(name) for name in METRICS} <= run.data.metrics.keys()
    assert len(points(uri)) == len({point[:3] for point in points(uri)})


def test_scores_of_another_version_of_a_task_start_a_new_run(uri: str, tmp_path: Path) -> None:
    """MLflow would show the former score and the new one at one step."""
    ledger, run = Ledger(tmp_path / "ledger"), make_run("B1", 0)
    findings = findings_of(ledger, 1, ())
    sync(findings, ledger, uri)
    other = replace(run, tasks={**run.tasks, "t2d": "r9"})
    (score,) = (result for result in make_results(other) if result.entry not in run.entries)
    attempt = ledger.lease(run.id)
    ledger.stage(score, attempt)
    ledger.commit(score.entry, attempt)
    rows = [replace(r, entries=ledger.entries_of(other)) if r.id == run.id else r for r in findings.runs]
    done = sync(replace(findings, runs=tuple(rows)), ledger, uri)
    assert (done.new, done.updated) == (1, 1)
    keys = [one.data.tags["semray.run_key"] for one in search(uri, "tags.arm = 'B1'")]
    assert sorted(key.split("/")[0] for key in keys) == ["run", "superseded"]


def test_what_a_comparison_no_longer_knows_is_no_longer_shown(small: tuple[Ledger, Findings], uri: str) -> None:
    """Runs that are missing make a claim undecided: no p, test or interval of before stands beside that."""
    ledger, findings = small
    sync(findings, ledger, uri)
    (first,) = findings.findings
    gone = {"p": None, "p_adjusted": None, "ci_low": None, "ci_high": None, "test": None, "as_expected": None}
    for words in ("undecided: runs missing", "undecided: runs missing still"):
        verdict = replace(first.verdict, verdict="undecided", words=words, **gone)
        assert sync(replace(findings, findings=(replace(first, verdict=verdict),)), ledger, uri).updated == 2
    (comparison,), (parent,) = of_kind(uri, "comparison"), of_kind(uri, "study")
    assert (comparison.data.tags["test"], comparison.data.tags["as_expected"]) == ("", "")
    for name in ("p", "p_holm", "p_bh", "ci_low", "ci_high"):
        assert np.isnan(comparison.data.metrics[name])
        assert not search(uri, f"metrics.{name} < 1")
    assert len(client(uri).get_metric_history(comparison.info.run_id, "p")) == 2  # unknown twice is told once
    counts = {name: count for name, count in parent.data.metrics.items() if name.startswith("verdicts/")}
    assert len(counts) == 7
    assert {name: count for name, count in counts.items() if count} == {"verdicts/undecided": 1.0}


def test_a_claim_that_is_edited_or_removed_is_put_aside(uri: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    sync(findings_of(ledger, 3, CLAIMS[:3]), ledger, uri)
    edited = findings_of(ledger, 3, (CLAIMS[0], replace(CLAIMS[2], margin=0.001)))
    assert sync(edited, ledger, uri).problem == ""
    found = of_kind(uri, "comparison")
    live = {
        (run.data.tags["claim"], run.data.tags["margin"])
        for run in found
        if run.data.tags["verdict"] != "superseded"
    }
    assert live == {("H1", ""), ("H3b", "0.001")}
    assert len(found) == 4
    aside = [run for run in found if run.data.tags["verdict"] == "superseded"]
    assert all(run.info.run_name.endswith(" (superseded)") for run in aside)
    by_place = sorted(search(uri), key=lambda run: run.data.tags["semray.place"])
    assert {run.info.run_id for run in by_place[-2:]} == {run.info.run_id for run in aside}  # below all runs
    assert sync(edited, ledger, uri).updated == 0


def test_a_search_of_a_study_leaves_its_comparisons_alone(small: tuple[Ledger, Findings], uri: str) -> None:
    """Both write into one experiment."""
    ledger, findings = small
    sync(findings, ledger, uri)
    searched = Planned(key="search/B1", kind="search", digest="x", build=lambda: Entry(name="search B1"))
    tree = Tree(experiment=STUDY, note="", parent=lambda links: searched, children=list)
    assert mirror(tree, uri).new == 1
    assert [run.data.tags["verdict"] for run in of_kind(uri, "comparison")] == ["better"]


def test_seeds_that_are_declared_before_others_start_a_new_comparison(
    small: tuple[Ledger, Findings], uri: str
) -> None:
    """They move the step of every other seed, where its difference stands already."""
    ledger, findings = small
    sync(findings, ledger, uri)
    sync(replace(findings, seeds=(7, *findings.seeds)), ledger, uri)
    steps = {
        run.data.tags["verdict"]: [p.step for p in client(uri).get_metric_history(run.info.run_id, "delta")]
        for run in of_kind(uri, "comparison")
    }
    assert steps == {"superseded": [0, 1, 2], "better": [1, 2, 3]}


@pytest.mark.parametrize("seeds", [0, 1, 300, 1000])
def test_what_a_comparison_rests_on_is_told_whole_of_any_number_of_seeds(seeds: int) -> None:
    rests_on = {str(seed): f"{seed:08x}-{seed + 1:08x}" for seed in range(seeds)}
    tags = write.evidence_tags(rests_on)
    assert write.evidence_in({**tags, "semray.digest": "x"}) == rests_on
    assert all(len(value) <= 5000 for value in tags.values())  # MLflow cuts at 8,000, and some stores earlier


def test_a_failed_run_that_finishes_later_is_the_same_run(uri: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 5, ())  # M1 failed at seed 4
    sync(findings, ledger, uri)
    (before,) = search(uri, "attributes.status = 'FAILED' and tags.`semray.kind` = 'run'")
    run = make_run("M1", 4)
    fill(ledger, [run])
    record = ledger.record(run)
    metrics = {name: metric.value for name, metric in record.metrics.items()}
    rows = tuple(
        replace(
            row,
            status="finished",
            metrics=metrics,
            attempt=record.attempt,
            problem="",
            entries=ledger.entries_of(run),
        )
        if row.id == run.id
        else row
        for row in findings.runs
    )
    sync(replace(findings, runs=rows), ledger, uri)
    after = client(uri).get_run(before.info.run_id)
    assert after.info.status == "FINISHED"
    assert "t2d/recall_at_10" in after.data.metrics
