"""MLflow as a mirror: it shows what the ledger holds, once, whatever happens on the way. Real MLflow throughout."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy import stats

from orchestration.ledger.ledger import Ledger
from orchestration.machines.doctor import tracking
from orchestration.study.errors import StudyError
from orchestration.tracking import entries, write
from orchestration.tracking.entries import Entry, Planned, metric_name, planned, planned_study
from orchestration.tracking.model import model_files
from orchestration.tracking.reaching import database_of, default_uri, reason, shown
from orchestration.tracking.sync import SyncReport, Tree, mirror, sync
from orchestration.tracking.ui import experiment_page
from orchestration.verdicts.findings import Findings
from tests.finished_study import ARMS, CLAIMS, METRICS, RECALL, fill, findings_of, make_results, make_run
from tests.named_study import finished, write_study
from tests.tiny import tiny_backbone
from tests.waiting import free_port

STUDY = "concept-hypotheses"
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # MLflow's own affair


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, created once: that takes longer than a sync."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="session")
def new_uri(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """An MLflow of its own, empty, in a folder of its own."""

    def make() -> str:
        path = tmp_path_factory.mktemp("mirror") / "mlflow.db"
        shutil.copy(empty_database, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture
def uri(new_uri: Callable[[], str]) -> str:
    return new_uri()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Findings]:
    """25 runs, of which 23 finished, and 5 comparisons."""
    ledger = Ledger(tmp_path_factory.mktemp("study") / "ledger")
    return ledger, findings_of(ledger)


@pytest.fixture(scope="session")
def mirrored(study: tuple[Ledger, Findings], new_uri: Callable[[], str]) -> str:
    """The study in MLflow; tests only look at it."""
    uri = new_uri()
    done = sync(study[1], study[0], uri)
    assert (done.problem, done.new, done.updated) == (
        "",
        1 + 24 + 5,
        0,
    )  # study; 23 finished, 1 failed; comparisons
    return uri


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Findings]:
    """10 runs, one comparison: 12 entries in MLflow."""
    ledger = Ledger(tmp_path_factory.mktemp("small") / "ledger")
    return ledger, findings_of(ledger, 3, CLAIMS[:1])


@pytest.fixture(scope="session")
def undisturbed(small: tuple[Ledger, Findings], new_uri: Callable[[], str]) -> list[tuple[Any, ...]]:
    """Every point of the small study's mirror."""
    uri = new_uri()
    sync(small[1], small[0], uri)
    return points(uri)


@contextmanager
def tracked_at(uri: str) -> Iterator[None]:
    """MLflow's own loaders read the process-wide address."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


def client(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def search(uri: str, condition: str = "") -> list[Any]:
    found = client(uri)
    experiment = found.get_experiment_by_name(STUDY)
    return list(found.search_runs([experiment.experiment_id], condition, max_results=1000))


def of_kind(uri: str, kind: str) -> list[Any]:
    return search(uri, f"tags.`semray.kind` = '{kind}'")


def everything(uri: str) -> dict[str, Any]:
    """Every row of every table and every artifact's time of writing: all that a second sync could add to."""
    database = Path(uri.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows: dict[str, Any] = {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in names
        }
    artifacts = database.parent / "mlartifacts"
    rows["artifacts"] = {str(path): path.stat().st_mtime_ns for path in artifacts.rglob("*") if path.is_file()}
    return rows


def points(uri: str) -> list[tuple[Any, ...]]:
    """(run key, metric, step, value) of every point logged for a run that counts."""
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as connection:
        return sorted(
            connection.execute(
                "SELECT tags.value, metrics.key, metrics.step, metrics.value FROM metrics JOIN tags "
                "ON tags.run_uuid = metrics.run_uuid AND tags.key = 'semray.run_key'"
            )
        )


def test_what_mlflow_shows(study: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = study
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.updated) == (
        "",
        1 + 24 + 5,
        0,
    )  # study; 23 finished, 1 failed; comparisons
    (parent,) = of_kind(uri, "study")
    children = search(uri, f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    assert len(children) == 29
    assert parent.data.tags["revision"] == findings.revision
    assert "B1 - B0" in parent.data.tags["mlflow.note.content"]

    row = next(row for row in findings.runs if (row.arm, row.seed) == ("B1", 3))
    (run,) = search(uri, "tags.arm = 'B1' and tags.seed = '3'")
    assert run.data.tags["semray.run_key"].endswith(row.id)
    assert run.data.tags["ledger"] == row.location
    figures = {metric_name(name): value for name, value in row.metrics.items()}
    logged = {name: value for name, value in run.data.metrics.items() if not name.startswith("train/")}
    assert logged == figures | {"seconds/train": 2.5, "seconds/evaluate": 0.5}
    assert run.data.params["hard_negatives"] == "True"
    assert run.data.params["seed"] == "3"
    (dataset,) = run.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("concept corpus", findings.corpus_fingerprint)
    assert json.loads(dataset.dataset.source) == findings.data
    assert {tag.key: tag.value for tag in dataset.tags} == {"mlflow.data.context": "training"}
    (untrained,) = search(uri, "tags.arm = 'B0'")
    assert (untrained.info.run_name, untrained.data.params["seed"]) == ("B0 untrained", "none")
    assert untrained.inputs.dataset_inputs[0].tags[0].value == "evaluation"
    loss = client(uri).get_metric_history(run.info.run_id, "train/loss")
    assert [(point.step, point.value) for point in loss] == list(row.curve)


def test_the_run_of_a_study_counts_its_runs_and_verdicts(study: tuple[Ledger, Findings], mirrored: str) -> None:
    (parent,) = of_kind(mirrored, "study")
    counts = {name: count for name, count in parent.data.metrics.items() if count}
    assert counts == {"runs/finished": 23, "runs/failed": 1, "runs/missing": 1, "verdicts/better": 2,
                      "verdicts/worse": 1, "verdicts/equivalent": 1, "verdicts/undecided": 1}  # fmt: skip
    assert parent.info.status == "FAILED"
    assert parent.data.tags["verdict"] == "2 better, 1 equivalent, 1 undecided, 1 worse"
    ends = [row.began + (row.seconds or 0) for row in study[1].runs if row.began is not None]
    assert parent.info.end_time == pytest.approx(max(ends) * 1000, abs=1)
    (point,) = client(mirrored).get_metric_history(parent.info.run_id, "runs/finished")
    assert point.step == 23
    (late,) = search(mirrored, "tags.claim = 'X1'")
    assert late.data.metrics["p_bh"] == 2 / 2**8  # all of 8 seeds agree: of one late claim nothing is corrected
    assert np.isnan(late.data.metrics["p_holm"])


def test_a_comparison_can_be_found_and_read(study: tuple[Ledger, Findings], mirrored: str) -> None:
    findings, uri = study[1], mirrored
    assert {run.data.tags["claim"] for run in search(uri, "tags.verdict = 'better'")} == {"H1", "H3a"}
    (equal,) = search(uri, "tags.verdict = 'equivalent'")
    verdict = findings.findings[2].verdict
    asked = {"delta_mean": verdict.delta_mean, "ci_low": verdict.ci_low, "ci_high": verdict.ci_high, "p": verdict.p,
             "p_holm": verdict.p_adjusted, "sign_agreement": verdict.sign_agreement, "effect_dz": verdict.effect_dz}  # fmt: skip
    assert asked.items() <= equal.data.metrics.items()
    score = {(row.arm, row.seed): row.metrics.get(RECALL) for row in findings.runs}
    control, treatment = (np.array([score[arm, seed] for seed in range(8)]) for arm in ("B1-noHN", "B1"))
    delta = treatment - control
    sides = (
        stats.ttest_1samp(delta, end, alternative=to).pvalue for end, to in ((-0.03, "greater"), (0.03, "less"))
    )
    expected = {
        "n_seeds": 8,
        "delta_sd": delta.std(ddof=1),
        "tost_p": max(sides),
        "effect_dz": delta.mean() / delta.std(ddof=1),
    }
    assert {name: equal.data.metrics[name] for name in expected} == pytest.approx(expected)
    assert np.isnan(equal.data.metrics["p_bh"])
    deltas = client(uri).get_metric_history(equal.info.run_id, "delta")
    assert [(d.step, d.value) for d in deltas] == [(i, pair["delta"]) for i, pair in enumerate(verdict.per_seed)]
    folder = Path(client(uri).download_artifacts(equal.info.run_id, ""))
    assert json.loads((folder / "comparison.json").read_text()) == verdict.to_dict()
    assert (folder / "forest.png").read_bytes().startswith(b"\x89PNG")
    with tracked_at(uri):
        table = client(uri).load_table(equal.info.experiment_id, "seeds.json", [equal.info.run_id])
    assert list(table["difference"]) == pytest.approx(delta)
    assert list(table["B1-noHN"]) == pytest.approx(control)
    assert list(table["B1"]) == pytest.approx(treatment)


def test_a_comparison_leads_to_its_runs_and_items(study: tuple[Ledger, Findings], mirrored: str) -> None:
    """By a link that draws the metric of each run side by side, the control's first, and a table of items."""
    (one,) = search(mirrored, "tags.claim = 'H1'")
    link = re.search(
        r"\[t2d/recall_at_10 of its 9 runs\]\(#/metric\?([^)]*)\)", one.data.tags["mlflow.note.content"]
    )
    assert link is not None
    picture = f"![forest.png](get-artifact?path=forest.png&run_uuid={one.info.run_id})"
    assert picture in one.data.tags["mlflow.note.content"]
    asked = parse_qs(link[1])
    assert json.loads(asked["metric"][0]) == "t2d/recall_at_10"
    assert json.loads(asked["experiments"][0]) == [one.info.experiment_id]
    tags = [client(mirrored).get_run(run).data.tags for run in json.loads(asked["runs"][0])]
    assert [(found["arm"], found["seed"]) for found in tags] == [
        ("B0", "none"),
        *(("B1", f"{k}") for k in range(8)),
    ]
    folder = Path(client(mirrored).download_artifacts(one.info.run_id, ""))
    items = json.loads((folder / "items.json").read_text())
    assert items["columns"] == ["item", "B0", "B1", "gain"]
    told = {name: (control, treatment, gain) for name, control, treatment, gain in items["data"]}
    assert told == {i.item_id: (i.control, i.treatment, i.delta) for i in study[1].findings[0].items}
    assert all(gain == pytest.approx(treatment - control) for control, treatment, gain in told.values())


@pytest.mark.parametrize(
    ("one", "status"), [("finished", "FINISHED"), ("missing", "RUNNING"), ("failed", "FAILED")]
)
def test_a_study_is_finished_when_all_its_runs_are(small: tuple[Ledger, Findings], one: str, status: str) -> None:
    """A failed run is told before those that are still missing."""
    _, findings = small
    first, second, *others = findings.runs
    also = "finished" if one == "finished" else "missing"
    runs = (replace(first, status=one), replace(second, status=also), *others)
    assert planned_study(replace(findings, findings=(), runs=runs), {}).build().status == status


def test_failed_runs_are_shown_as_failed(mirrored: str) -> None:
    (failed,) = search(mirrored, "attributes.status = 'FAILED' and tags.`semray.kind` = 'run'")
    assert failed.data.tags["problem"] == "loss is nan at step 12 (hince)"
    assert not failed.data.metrics


def test_syncing_again_adds_nothing(study: tuple[Ledger, Findings], mirrored: str) -> None:
    (ledger, findings), uri = study, mirrored
    before = everything(uri)
    again = sync(replace(findings, created="later"), ledger, uri)
    assert (again.problem, again.new, again.updated) == ("", 0, 0)
    assert everything(uri) == before


def test_an_unchanged_study_is_recognised_without_reading_it(
    study: tuple[Ledger, Findings], mirrored: str, tmp_path: Path
) -> None:
    unreadable = tuple(replace(run, metrics={}, curve=()) for run in study[1].runs)
    done = sync(replace(study[1], runs=unreadable), Ledger(tmp_path / "no-ledger"), mirrored)
    assert (done.problem, done.new, done.updated) == ("", 0, 0)


@pytest.mark.parametrize("kind", ["run", "comparison", "study"])
def test_what_was_deleted_in_mlflow_is_restored(small: tuple[Ledger, Findings], uri: str, kind: str) -> None:
    """One written anew would be its twin once a person restores it."""
    ledger, findings = small
    sync(findings, ledger, uri)
    before = everything(uri)
    (one, *_) = of_kind(uri, kind)
    client(uri).delete_run(one.info.run_id)
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.updated, done.restored) == ("", 0, 0, 1)
    assert done.line.endswith(", 1 restored")
    assert everything(uri) == before
    client(uri).restore_run(one.info.run_id)
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    assert everything(uri) == before


def test_what_was_superseded_and_deleted_stays_so_and_holds_up_nothing(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, findings = small
    sync(findings, ledger, uri)
    without = replace(findings, findings=())
    assert sync(without, ledger, uri).updated == 1
    (comparison,) = of_kind(uri, "comparison")
    client(uri).delete_run(comparison.info.run_id)
    before, asked = everything(uri), []
    api = type(client(uri))
    search_runs = api.search_runs
    monkeypatch.setattr(api, "search_runs", lambda *told, **more: asked.append(told) or search_runs(*told, **more))
    assert sync(without, ledger, uri).line.endswith(": up to date")
    assert everything(uri) == before
    assert len(asked) == 2  # what was deleted, and the study's own run


def test_what_is_lost_for_good_is_written_again_when_asked_for(small: tuple[Ledger, Findings], uri: str) -> None:
    """By the removal of the tag that says a run is whole."""
    ledger, findings = small
    sync(findings, ledger, uri)
    before = points(uri)
    (parent,), (comparison,) = of_kind(uri, "study"), of_kind(uri, "comparison")
    artifacts = Path(client(uri).download_artifacts(comparison.info.run_id, ""))
    files = sorted(artifacts.iterdir())
    shutil.rmtree(artifacts)
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    for run in (parent, comparison):
        client(uri).delete_tag(run.info.run_id, "semray.digest")
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.updated) == ("", 1, 1)
    assert sorted(artifacts.iterdir()) == files
    assert points(uri) == before


@pytest.mark.parametrize("after", [0, 6, 11])
def test_an_interrupted_sync_is_completed(
    small: tuple[Ledger, Findings],
    undisturbed: list[tuple[Any, ...]],
    uri: str,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    """Ctrl-C while the artifacts of some run are written: the next sync ends where an undisturbed one does."""
    ledger, findings = small
    log_files, calls = write._log_files, iter(range(100))

    def interrupted(*arguments: Any) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt
        log_files(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(write, "_log_files", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sync(findings, ledger, uri)
    assert sync(findings, ledger, uri).problem == ""
    assert points(uri) == undisturbed
    assert len(search(uri)) == 12


def test_two_at_once_write_once(small: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = small
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: sync(findings, ledger, uri), range(2)))
    assert sorted(report.new for report in done) == [0, 12]
    assert len(search(uri)) == 12


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


def test_parents_of_an_earlier_semray_become_one(uri: str, tmp_path: Path) -> None:
    """There was one for each revision: the newest goes on, the others are out of the way."""
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 1, ())
    sync(findings, ledger, uri)
    (parent,) = of_kind(uri, "study")
    experiment = parent.info.experiment_id
    client(uri).set_tag(parent.info.run_id, "semray.run_key", "study/0123456789abcdef")
    client(uri).set_tag(parent.info.run_id, "semray.digest", "of before")
    tags = {"semray.run_key": "study/fedcba9876543210", "semray.kind": "study"}
    client(uri).create_run(experiment, start_time=1, tags=tags)
    assert sync(findings, ledger, uri).problem == ""
    keys = {run.info.run_id: run.data.tags["semray.run_key"] for run in of_kind(uri, "study")}
    assert keys.pop(parent.info.run_id) == "study"
    assert [key.split("/")[0] for key in keys.values()] == ["superseded"]


def test_times_and_thin_curves(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run begins and ends when it did; of a long curve as many points are shown as a chart can use."""
    monkeypatch.setitem(ARMS, "B1", {**ARMS["B1"], "steps": 500, "whole": "x" * 500, "long": "x" * 501})
    ledger = Ledger(tmp_path / "ledger")
    before = time.time()
    findings = findings_of(ledger, 1, ())
    assert sync(findings, ledger, uri).problem == ""
    (run,) = search(uri, "tags.arm = 'B1'")
    assert run.info.end_time - run.info.start_time == 3000  # 2.5 s of training and .5 s of scoring
    assert before - 3 < run.info.start_time / 1000 < time.time()
    (parent,) = of_kind(uri, "study")
    assert parent.info.start_time == min(one.info.start_time for one in of_kind(uri, "run"))
    loss = client(uri).get_metric_history(run.info.run_id, "train/loss")
    assert (len(loss), loss[0].step, loss[-1].step) == (100, 0, 499)
    assert (run.data.params["whole"], run.data.params["long"]) == ("x" * 500, "long, see spec.json")


def test_the_table_of_a_study_has_a_view(mirrored: str) -> None:
    """Its columns are the verdicts and what is claimed; the study stands first, then claims, then runs."""
    experiment = client(mirrored).get_experiment_by_name(STUDY)
    view = json.loads(experiment.tags["mlflow.sharedViewState.semray"])
    assert view["selectedColumns"][:2] == ["tags.`verdict`", "tags.`difference`"]
    assert "metrics.`t2d/recall_at_10`" in view["selectedColumns"]
    assert (
        f"(#/experiments/{experiment.experiment_id}/runs?viewStateShareKey=semray"
        in (experiment.tags["mlflow.note.content"])
    )
    found = client(mirrored).search_runs([experiment.experiment_id], "", order_by=[f"{view['orderByKey']} ASC"])
    assert found[0].data.tags["verdict"] == "2 better, 1 equivalent, 1 undecided, 1 worse"
    claims = [run.data.tags["claim"] for run in found[1:6]]
    assert claims == ["H1", "H3a", "H3b", "H2", "X1"]
    assert found[1].data.tags["difference"].startswith("+0.1")
    assert all(run.data.tags["semray.kind"] == "run" for run in found[6:])


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


def test_runs_and_comparisons_stand_in_the_order_of_the_study(uri: str, tmp_path: Path) -> None:
    """Also those that are unchanged, before which an arm or a claim was put."""
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 3, CLAIMS[:2])
    sync(findings, ledger, uri)
    turned = replace(findings, runs=findings.runs[::-1], findings=findings.findings[::-1])
    done = sync(turned, ledger, uri)
    assert (done.problem, done.new, done.updated, done.unchanged) == ("", 0, 1, 12)
    by_place = [run.data.tags for run in sorted(search(uri), key=lambda run: run.data.tags["semray.place"])]
    assert [one["ledger_id"] for one in by_place if "ledger_id" in one] == [row.id for row in turned.runs]
    claims = [one["claim"] for one in by_place if "claim" in one]
    assert claims == [finding.verdict.claim for finding in turned.findings]
    assert [one["semray.kind"] for one in by_place] == ["study", *2 * ["comparison"], *10 * ["run"]]


def test_a_study_of_more_runs_than_a_page_is_read_whole(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, findings = small
    sync(findings, ledger, uri)
    (parent,) = of_kind(uri, "study")
    client(uri).delete_tag(parent.info.run_id, "semray.digest")
    before, api = points(uri), type(client(uri))
    search_runs = api.search_runs
    monkeypatch.setattr(api, "search_runs", lambda *asked, **how: search_runs(*asked, **{**how, "max_results": 5}))
    done = sync(findings, ledger, uri)
    assert (done.problem, done.new, done.unchanged) == ("", 1, 11)
    assert points(uri) == before


def test_a_run_of_any_size_is_written_whole(uri: str) -> None:
    """MLflow takes 1,000 points, 100 parameters and 100 tags at a time."""
    entry = Entry(
        name="large",
        points=[("loss", 1.0 / step, step) for step in range(1, 1701)],
        latest={f"figure {k}": float(k) for k in range(150)},
        params={f"setting {k}": str(k) for k in range(250)},
        tags={**{f"tag {k}": str(k) for k in range(250)}, "problem": "a \x1b[31mred\nline"},
        status="FAILED",
    )
    large = Planned(key="run/large", kind="run", digest="x", build=lambda: entry)
    assert mirror(Tree(experiment=STUDY, note="", parent=lambda links: large, children=list), uri).problem == ""
    (run,) = of_kind(uri, "run")
    assert run.info.status == "FAILED"
    loss = client(uri).get_metric_history(run.info.run_id, "loss")
    assert sorted((point.step, point.value) for point in loss) == [(step, 1.0 / step) for step in range(1, 1701)]
    assert {**run.data.metrics, "loss": 0} == {**entry.latest, "loss": 0}
    assert run.data.params == entry.params
    assert {**entry.tags, "problem": "a \\x1b[31mred\nline"}.items() <= run.data.tags.items()


def test_an_experiment_that_was_deleted_is_said(small: tuple[Ledger, Findings], uri: str) -> None:
    ledger, findings = small
    sync(replace(findings, findings=(), runs=()), ledger, uri)
    client(uri).delete_experiment(client(uri).get_experiment_by_name(STUDY).experiment_id)
    problem = f"the experiment {STUDY} was deleted there; restore it or delete it for good"
    assert sync(findings, ledger, uri).problem == problem


def test_the_page_of_a_study_is_found_by_its_name(mirrored: str, uri: str) -> None:
    number = client(mirrored).get_experiment_by_name(STUDY).experiment_id
    table = f"#/experiments/{number}/runs?viewStateShareKey=semray&compareRunsMode=TABLE"
    assert experiment_page(mirrored, STUDY, "http://host/") == f"http://host/{table}"
    number = client(uri).create_experiment("searched")  # a search alone has no verdicts to show
    assert experiment_page(uri, "searched", "") == f"/#/experiments/{number}"
    with pytest.raises(StudyError, match="no experiment other\n  accepted: one that `semray sync other`"):
        experiment_page(uri, "other", "")
    with pytest.raises(StudyError, match="no plain file\n  accepted: a server that answers, or a database"):
        experiment_page(f"sqlite:///{Path(__file__).parent}", STUDY, "")


def test_the_note_of_a_study_has_room_and_a_picture_of_its_claims(small: tuple[Ledger, Findings]) -> None:
    """MLflow cuts a tag at 8,000 letters, wherever that is."""
    _, findings = small
    whole = planned_study(findings, {}).build()
    assert (whole.pictures, "forest.png" in whole.files, "claims.json" in whole.tables) == (
        ("forest.png",),
        True,
        True,
    )
    bare = planned_study(replace(findings, findings=(), notes=[f"note {k}" for k in range(2000)]), {}).build()
    assert (bare.pictures, "forest.png" in bare.files, "claims.json" in bare.tables) == ((), False, False)
    kept, _, words = bare.note.rpartition("\n\n")
    assert words == "Cut here; all of it is in report.html."
    assert re.fullmatch(r"- note \d+", kept.splitlines()[-1])
    assert 7300 < len(kept) <= 7400
    assert "Cut here" not in whole.note


def test_a_comparison_tells_what_its_design_knows(small: tuple[Ledger, Findings]) -> None:
    """The last of the e-values; without seeds no agreement of them, and without pairs no plot or link."""
    ledger, findings = small
    (first,) = findings.findings
    others: dict[str, Any] = {"e_values": (1.0, 30.0, 2.5), "n_seeds": 0, "per_seed": ()}

    def told(**changes: Any) -> Entry:
        finding = replace(first, verdict=replace(first.verdict, **changes))
        return planned(replace(findings, findings=(finding,)), ledger)[-1].build()

    known, unknown = told(), told(**others)
    assert (known.latest["sign_agreement"], known.compares is None, "seeds.png" in known.files) == (1, False, True)
    assert np.isnan(known.latest["e_value"])
    assert unknown.latest["e_value"] == 2.5
    assert (unknown.compares, unknown.points, "seeds.png" in unknown.files) == (None, [], False)


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


def test_a_forest_is_of_a_claim_and_its_own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a claim that says the same and more, nor of parts of a claim of that name on another backbone."""
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 3, (CLAIMS[0], replace(CLAIMS[0], claim="H9", min_effect=0.5)))
    first, more = findings.findings
    joint = [
        replace(first, verdict=replace(first.verdict, claim=claim, id=id, part_of=part_of))
        for claim, id, part_of in (("J", "all/a", None), ("J.1", "all/a/x", "J"), ("J", "all/b", None), ("J.1", "all/b/x", "J"))
    ]  # fmt: skip
    drawn: list[list[str]] = []
    forest = entries.plots.forest
    monkeypatch.setattr(entries.plots, "forest", lambda told: [drawn.append(_ids(told)), forest(told)][1])
    whole = replace(findings, findings=(first, more, *joint))
    for plan in planned(whole, ledger):
        if plan.kind == "comparison":
            plan.build()
    alone = [ids for ids in drawn if len(ids) < len(whole.findings)]
    one, other = first.verdict.id, more.verdict.id
    assert alone == [[one], [other], ["all/a", "all/a/x"], ["all/a/x"], ["all/b", "all/b/x"], ["all/b/x"]]


def _ids(findings: Findings) -> list[str]:
    return [finding.verdict.id for finding in findings.findings]


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


def test_no_secret_reaches_mlflow(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t-in-the-environment")
    ledger, findings = small
    sync(findings, ledger, uri)
    assert "s3cr3t" not in repr(everything(uri))
    nobody = sync(findings, ledger, "http://me:s3cr3t@127.0.0.1:1")
    assert nobody.problem == "the server does not answer"
    assert "s3cr3t" not in nobody.line
    assert nobody.seconds < 30
    assert capfd.readouterr() == ("", "")


@given(st.text(st.characters(categories=["Lu", "P", "S", "Zs"], exclude_characters="`"), max_size=4))
def test_a_password_is_never_shown_whatever_signs_it_holds(signs: str) -> None:
    secret = f"s3cr3t{signs}s3cr3t"
    for uri in (
        f"http://me:{secret}@host:5000/",
        f"postgresql://me:{secret}@host/db",
        f"postgresql://host/db?user=me@there&password={secret}",
        f"mysql+pymysql://host/db?password={secret}",
    ):
        told = reason(ValueError(f"Invalid url: {uri} of no host"), uri)
        assert "s3cr3t" not in shown(uri) + told
        assert told.startswith("Invalid url: ")
        assert told.endswith(" of no host")
        assert shown(shown(uri)) == shown(uri)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("http://me:a/b@c@host:5000", "http://host:5000"),
        ("postgresql://me:a?b@host/db", "postgresql://…"),
        ("postgresql:///db?host=h&user=me&password=a", "postgresql:///db"),
        ("http://host:5000", "http://host:5000"),
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("file:///home/me@work/mlruns", "file:///home/me@work/mlruns"),
        ("./mlruns@work?", "./mlruns@work?"),
    ],
)
def test_what_is_shown_of_an_address(uri: str, told: str) -> None:
    assert shown(uri) == told


def test_an_address_within_a_sentence_ends_with_its_word() -> None:
    """The proxy's, not the server's: whoever names two has both hidden."""
    said = "no way to http://me:s3cr3t@proxy:1 from me@here"
    assert reason(ValueError(said), "http://host") == "no way to http://proxy:1 from me@here"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("first\nsecond"), "first"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 300), "x" * 200),
        (ConnectionRefusedError("[Errno 111]"), "the server does not answer"),
    ],
)
def test_a_reason_is_one_line(error: Exception, told: str) -> None:
    assert reason(error, "http://host") == told


def test_default_uri(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_uri(str(tmp_path / "ledger")) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.chdir(tmp_path)
    assert default_uri("s3://bucket/ledger") == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert default_uri("s3://bucket/ledger") == "http://mlflow.example:5000"


@pytest.mark.parametrize("name", ["is it better?", "50%41", "my%20project", "100%", "a#b;c&d=e [x]* 日本"])
def test_the_database_lies_beside_the_ledger_whatever_its_folder_is_called(
    small: tuple[Ledger, Findings],
    empty_database: Path,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A URI has its own meaning for `?` and for `%` with two digits."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    ledger, findings = small
    uri = default_uri(str(folder / "ledger"))
    assert database_of(uri) == folder / "mlflow.db"
    assert sync(findings, ledger, uri).new == 12
    assert len(list((folder / "mlartifacts").rglob("report.html"))) == 1
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    assert tracking(str(folder / "ledger")).ok
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(folder) and path.is_file()] == []


def test_a_file_in_place_of_the_folder_is_said(small: tuple[Ledger, Findings], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = sync(small[1], small[0], f"sqlite:///{tmp_path}/file/deep/mlflow.db")
    assert done.problem == f"{tmp_path}/file cannot be written"


IN_ITS_PLACE: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to nothing": lambda place: place.symlink_to("/nowhere/mlflow.db"),
}


@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_what_is_no_database_is_not_tried_for_minutes(
    small: tuple[Ledger, Findings], tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    ledger, findings = small
    IN_ITS_PLACE[what](tmp_path / "mlflow.db")
    done = sync(findings, ledger, default_uri(str(tmp_path / "ledger")))
    assert done.problem == f"{tmp_path}/mlflow.db is no plain file"
    assert done.seconds < 30


def test_line_for_the_terminal() -> None:
    assert SyncReport(uri="u", unchanged=1).line == "mlflow  u: up to date"
    assert SyncReport(uri="u", new=1).line == "mlflow  u: 1 new, 0 updated, 0 unchanged"
    grown = SyncReport(uri="u", updated=2, unchanged=3, restored=4)
    assert grown.line == "mlflow  u: 0 new, 2 updated, 3 unchanged, 4 restored"
    assert "`semray sync` catches up" in SyncReport(uri="u", problem="the server does not answer").line


def test_a_model_is_loaded_back_without_pickle_or_copy(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    backbone = str(tiny_backbone(tmp_path / "backbone", layers=1))
    body = modules.Transformer(backbone)
    encoder = SentenceTransformer(modules=[body, modules.Pooling(body.get_embedding_dimension())], device="cpu")
    ledger = Ledger(tmp_path / "ledger")
    run = make_run("B1", 0)
    fill(ledger, [run], save_model=lambda folder: encoder.save(str(folder)))
    findings = findings_of(ledger, 1, ())
    sync(findings, ledger, uri)
    (tracked,) = search(uri, "tags.arm = 'B1'")
    (output,) = tracked.outputs.model_outputs
    stored = list(Path(uri.removeprefix("sqlite:///")).parent.rglob("models/*/artifacts/*"))
    assert {path.name for path in stored} == {"MLmodel", "requirements.txt"}
    assert sum(path.stat().st_size for path in stored) < 2000

    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    texts = ["a small pot", "water"]
    with tracked_at(uri):
        model = f"models:/{output.model_id}"
        loaded = mlflow.pyfunc.load_model(model)
        np.testing.assert_allclose(loaded.predict(texts), encoder.encode(texts), atol=1e-6)
        (tmp_path / "ledger").rename(tmp_path / "moved")
        with pytest.raises(StudyError, match="holds no model of run"):
            mlflow.pyfunc.load_model(model)
        moved = mlflow.pyfunc.load_model(model, model_config={"ledger": str(tmp_path / "moved")})
        np.testing.assert_allclose(moved.predict(texts), encoder.encode(texts), atol=1e-6)


def test_a_model_in_an_object_store_can_be_loaded_back(tmp_path: Path) -> None:
    """Its files lie where the entry's pointer says."""
    ledger, (run, without) = Ledger(f"memory://{uuid.uuid4().hex}"), (make_run("B1", 0), make_run("B1", 1))
    fill(ledger, [run], save_model=lambda folder: (folder / "modules.json").write_text("[]") and None)
    fill(ledger, [without])
    assert model_files(tmp_path, ledger.url, run.id)
    assert not model_files(tmp_path, ledger.url, without.id)


def test_a_model_is_tracked_once_whatever_is_interrupted(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(tmp_path / "ledger"), make_run("B1", 0)
    fill(ledger, [run], save_model=lambda folder: (folder / "modules.json").write_text("[]") and None)
    name = 'it\'s 50% "so" a/b:c.d seed 0'
    entry = Entry(name=name, model={"ledger": ledger.url, "run": run.id})
    tracked = Planned(key="run/B1", kind="run", digest="x", build=lambda: entry)
    tree = Tree(experiment=STUDY, note="", parent=lambda links: tracked, children=list)
    api = type(client(uri))
    with monkeypatch.context() as patch:
        patch.setattr(api, "finalize_logged_model", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mirror(tree, uri)
    for _ in range(2):
        assert mirror(tree, uri).problem == ""
        (found,) = of_kind(uri, "run")
        (model,) = client(uri).search_logged_models([found.info.experiment_id])
        assert (model.status, model.name) == ("READY", "it-s-50-so-a-b-c-d seed 0".replace(" ", "-"))
        assert [output.model_id for output in found.outputs.model_outputs] == [model.model_id]
        client(uri).delete_tag(found.info.run_id, "semray.digest")


def interrupted(*arguments: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def start_server(uri: str, tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Start a real `mlflow server` on a port; returns when it listens."""
    started: list[subprocess.Popen[str]] = []

    def start(port: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, "--workers", "1",
                   "--host", "127.0.0.1", "--port", str(port), "--artifacts-destination", str(tmp_path / "proxied")]  # fmt: skip
        environment = os.environ | {
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        server = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(server)
        wait_for(server, "Application startup complete")
        return server

    yield start
    for server in started:
        kill(server)


def wait_for(server: subprocess.Popen[str], words: str) -> None:
    """Read the server's output up to these words, then go on draining it."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if words in line:
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return
    raise AssertionError("".join(said))


def kill(server: subprocess.Popen[str]) -> None:
    """kill -9 of the server and its workers, which are a process group of their own."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_a_server_that_dies_delays_nothing_and_is_caught_up(
    uri: str, tmp_path: Path, start_server: Callable[[int], subprocess.Popen[str]]
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    ledger = Ledger(tmp_path / "ledger")
    server = start_server(port)
    few = sync(replace(findings_of(ledger, 2, CLAIMS[:1]), revision="2"), ledger, address)
    assert few.problem == ""
    findings = findings_of(ledger, 3, CLAIMS[:1])
    run = next(run for run in findings.runs if run.arm == "B1")
    assert few.links[run.id].startswith(f"{address}/#/experiments/")

    kill(server)
    begun = time.monotonic()
    away = sync(findings, ledger, address)
    assert away.problem == "the server does not answer"
    assert time.monotonic() - begun < 30

    start_server(port)
    caught_up = sync(findings, ledger, address)
    assert (caught_up.problem, caught_up.new) == ("", 3)  # the runs of the third seed
    again = sync(findings, ledger, address)
    assert (again.new, again.updated) == (0, 0)
    keys = [run.data.tags["semray.run_key"] for run in search(uri)]
    assert len(keys) == len(set(keys)) == 1 + 10 + 1
    assert len(points(uri)) == len(set(points(uri)))


def test_a_planted_link_is_not_followed(
    small: tuple[Ledger, Findings], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock lies in the user's own cache, and a link under its name is refused, not written through."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    ledger, findings = small
    assert sync(findings, ledger, uri).problem == ""
    (lock,) = (tmp_path / "cache" / "locks").iterdir()
    assert lock.stat().st_mode & 0o077 == 0
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock.unlink()
    lock.symlink_to(victim)
    assert sync(findings, ledger, uri).problem != ""
    assert victim.read_text() == "mine"


def test_a_sync_that_does_not_end_is_not_waited_for(
    small: tuple[Ledger, Findings], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestration.tracking import sync as module

    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    ledger, findings = small
    with module._locked(uri, findings.study):
        assert "another sync of this study has not ended" in sync(findings, ledger, uri).problem
    assert sync(findings, ledger, uri).problem == ""


def test_odd_names_are_tracked_as_they_are(uri: str, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    arms, claims = ["*B1* {lr 1e-3}", "it's; drop -- /../", "<b>" + "日" * 97], ["H 1", "H-1", "c" * 100]
    plan, ledger, findings = finished(write_study(tmp_path / "odd's study.yaml", "Is *it* <b>?", arms, claims))
    assert sync(findings, ledger, uri).problem == ""
    assert sync(findings, ledger, uri).updated == 0
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(plan.study.name)
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=100)
    assert {run.data.tags.get("claim") for run in runs} == {*claims, None}
    assert {run.data.tags.get("arm") for run in runs} == {*arms, None}
    assert len(runs) == 1 + len(findings.runs) + len(claims)
    assert all(len(run.info.run_name) <= 250 for run in runs)
    assert _read(experiment.tags["mlflow.note.content"])[0] == "Is *it* <b>?"
    told = {
        run.data.tags["claim"]: _read(run.data.tags["mlflow.note.content"])
        for run in runs
        if "claim" in run.data.tags
    }
    for verdict in (finding.verdict for finding in findings.findings):
        assert told[verdict.claim][:2] == [verdict.words, verdict.sentence]
    row = replace(findings.runs[0], status="failed", problem="KeyError: '__init__' of <b>")
    (failed, *_) = planned(replace(findings, runs=(row,)), ledger)
    assert _read(failed.build().note) == [row.problem]


def _read(note: str) -> list[str]:
    """The paragraphs of a note as MLflow's page shows them, without emphasis."""
    tokens = MarkdownIt("commonmark", {"html": True}).parse(note)
    texts = [[part for part in token.children or [] if part.type.startswith("text")] for token in tokens]
    return ["".join(part.content for part in parts) for parts in texts if parts]
