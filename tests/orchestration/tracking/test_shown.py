"""What MLflow shows of a study: its runs, its verdicts, and where each leads. Real MLflow throughout."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from markdown_it import MarkdownIt
from scipy import stats

from orchestration.ledger.ledger import Ledger
from orchestration.study.errors import StudyError
from orchestration.tracking import entries
from orchestration.tracking.entries import Entry, Planned, _params, metric_name, planned, planned_study
from orchestration.tracking.model import model_files
from orchestration.tracking.sync import SyncReport, Tree, mirror, sync
from orchestration.tracking.ui import experiment_page
from orchestration.verdicts.findings import Findings
from tests.finished_study import ARMS, CLAIMS, RECALL, fill, findings_of, make_run
from tests.mirror import STUDY, client, of_kind, search
from tests.named_study import finished, write_study
from tests.tiny import tiny_backbone

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # MLflow's own affair


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


def test_names_of_any_length_are_tracked() -> None:
    """MLflow refuses those of more than 250 letters, and with one of them the whole sync."""
    from mlflow.utils.validation import _validate_metric, _validate_param

    names = [f"scores/{'a' * 200}/{'b' * 200}@{last}" for last in (1, 10)]
    tracked = [metric_name(name) for name in names]
    assert len({*tracked}) == 2
    for name in tracked:
        _validate_metric(f"seconds/{name}", 1.0, 0, 0)
    (parameter,) = _params({"lr" * 150: 1})
    _validate_param(parameter, "1")


def _read(note: str) -> list[str]:
    """The paragraphs of a note as MLflow's page shows them, without emphasis."""
    tokens = MarkdownIt("commonmark", {"html": True}).parse(note)
    texts = [[part for part in token.children or [] if part.type.startswith("text")] for token in tokens]
    return ["".join(part.content for part in parts) for parts in texts if parts]


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
