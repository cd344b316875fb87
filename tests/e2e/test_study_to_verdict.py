"""One study from its YAML file to a verdict, on a real Ray, and everything a person may ask of it afterwards."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import RUN_ID, run_of
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone
from tests.waiting import until

pytestmark = pytest.mark.e2e

STUDY = """
question: Does training on concepts help a small encoder?
family: concept
backbones: [{backbone}]
seeds: {seeds}
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 8, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  M1: {{hard_negatives: true, readout: weighted, layers: 2}}
evaluate: [t2d, geometry]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}}
  - {{claim: H2, treatment: M1, control: B1, metric: t2d/mrr, expect: equivalent, margin: 0.01}}
resources: {{lanes: 2, models: {models}}}
"""
KEYS = {
    "claim",
    "treatment",
    "control",
    "backbone",
    "metric",
    "n_seeds",
    "delta_mean",
    "delta_sd",
    "ci_low",
    "ci_high",
}
KEYS |= {"p", "p_adjusted", "sign_agreement", "verdict", "per_seed"}

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of three arms and three seeds, a tiny encoder and a small WordNet."""
    folder = tmp_path_factory.mktemp("study")
    wordnet = folder / "wordnet"
    write_small_wordnet(wordnet)
    backbone = tiny_backbone(folder / "tiny")
    for name, seeds, models in (
        ("small", "3", "keep"),
        ("growing", "{start: 2, max: 4}", "keep"),
        ("frugal", "3", "none"),
        ("choosy", "3", "best"),
    ):
        (folder / f"{name}.yaml").write_text(
            STUDY.format(backbone=backbone, wordnet=wordnet, seeds=seeds, models=models)
        )
    return folder


@pytest.fixture(scope="module")
def finished(place: Path) -> dict[str, Any]:
    """The study after its first run, with what that run printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        done = subprocess.run(
            [sys.executable, "-m", "orchestration", "run", "small.yaml", "--ledger", "ledger"],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


@pytest.fixture
def ask(place: Path, finished: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Ask:
    """Call a command in the study's folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*words, "--ledger", "ledger"] if words[0] != "verify" else list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_the_first_run_trains_everything_and_prints_the_verdicts(finished: dict[str, Any], place: Path) -> None:
    assert finished["code"] == 0, finished["err"]
    assert re.search(r"^H1 +B1 - B0 +t2d/mrr", finished["out"], re.M)
    assert re.search(r"^H2 +M1 - B1 +t2d/mrr", finished["out"], re.M)
    assert "7/7 runs" in finished["err"]
    assert "left" in finished["err"]  # the time left
    assert len(Ledger(place / "ledger").ids()) == 7  # B0 once, two arms at three seeds
    assert (place / "reports/small/report.html").is_file()
    assert (place / "mlflow.db").is_file()
    assert "Traceback" not in finished["err"]


def test_a_second_run_trains_nothing_and_prints_the_same(ask: Ask, finished: dict[str, Any], place: Path) -> None:
    written = {path: path.stat().st_mtime_ns for path in (place / "ledger").glob("*/result.json")}
    code, out, err = ask("run", "small.yaml")
    assert (code, out) == (0, finished["out"])
    assert "left 0" in err
    assert "a lane is ready" not in err
    assert {path: path.stat().st_mtime_ns for path in (place / "ledger").glob("*/result.json")} == written


def test_the_report_as_json_has_what_programs_need(ask: Ask) -> None:
    code, out, _ = ask("report", "small.yaml", "--json")
    claims = json.loads(out)
    assert code == 0
    assert [claim["claim"] for claim in claims] == ["H1", "H2"]
    assert claims[0].keys() >= KEYS
    for claim in claims:
        deltas = [pair["treatment"] - pair["control"] for pair in claim["per_seed"]]
        assert claim["n_seeds"] == 3
        assert claim["delta_mean"] == pytest.approx(np.mean(deltas))
        assert claim["delta_sd"] == pytest.approx(np.std(deltas, ddof=1))


def test_every_figure_of_a_run_is_the_aggregate_of_its_items(place: Path, finished: dict[str, Any]) -> None:
    from evaluators.metrics.item_metrics import aggregate

    ledger = Ledger(place / "ledger")
    assert len(ledger.entries()) == 7 * (1 + 2)  # each trained, and scored on two tasks
    for entry in ledger.entries() - ledger.ids():
        metrics, items = ledger.scores(entry).metrics, ledger.items(entry).to_pandas()
        assert set(items["metric"]) == {name for name, metric in metrics.items() if metric.aggregate}
        for name, rows in items.groupby("metric", observed=True):
            assert metrics[name].aggregate is not None
            assert aggregate(metrics[name].aggregate, rows["value"].to_numpy(), None) == metrics[name].value


def test_a_folder_of_its_own_gives_the_same_figures(place: Path, finished: dict[str, Any], ask: Ask) -> None:
    """Seeds decide, not history: a second ledger, filled on one lane, holds the same values to the last digit.

    The study there keeps no model.
    """
    ledger = str(place / "elsewhere")
    command = [sys.executable, "-m", "orchestration", "run", "frugal.yaml", "--lanes", "1", "--ledger", ledger]
    done = subprocess.run([*command, "--json"], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first = json.loads(ask("report", "small.yaml", "--json")[1])
    assert [claim["per_seed"] for claim in json.loads(done.stdout)] == [claim["per_seed"] for claim in first]
    assert not list(Path(ledger).glob("*/model"))
    assert len(list((place / "ledger").glob("*/model"))) == 6
    assert all(Ledger(ledger).audit(entry) is None for entry in Ledger(ledger).entries())


def test_plan_and_status_know_what_is_done(ask: Ask) -> None:
    code, out, _ = ask("plan", "small.yaml")
    assert code == 0
    assert "7 runs = 2 arms x 3 seeds x 1 backbone + 1 untrained arm" in out
    assert "done 7" in out
    assert "H1" in out
    code, out, _ = ask("status", "small.yaml", "--json")
    assert {row["status"] for row in json.loads(out)["runs"]} == {"done"}


def test_seeds_are_added_until_decided_or_spent(ask: Ask, place: Path) -> None:
    """Two seeds cannot decide anything; the study grows, one pair at a time, and says what it could not settle."""
    code, out, err = ask("run", "growing.yaml", "--json")
    assert code == 0, err
    claims = {claim["claim"]: claim for claim in json.loads(out)}
    assert "still open: H1, H2; seed 2 for their arms" in err
    assert err.count("importing what runs need, in 2 lanes") == 1  # they stay from seed to seed
    assert "an e-process of 4 seeds cannot go below p = 0.037" in err
    assert claims["H2"]["n_seeds"] == 4
    assert claims["H2"]["verdict"] == "undecided"
    assert len(claims["H2"]["e_values"]) == 4
    again = json.loads(ask("report", "growing.yaml", "--json")[1])
    assert again == json.loads(out)
    passport = str(place / "growing.passport")
    assert ask("report", "growing.yaml", "--passport", passport)[0] == 0
    code, out, _ = ask("verify", passport)
    assert (code, "all agree" in out) == (0, True)  # the seeds that were added are derived again


def test_an_exported_model_gives_the_run_s_embeddings(ask: Ask, place: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from trainers.encoders.encoder import Encoder

    ledger, texts = Ledger(place / "ledger"), ["a small dog", "the house by the river", "old metal pot"]
    for arm in ("B1", "M1"):
        run_id = next(i for i in sorted(ledger.ids()) if ledger.training(i).run.arm == arm)
        target = tmp_path / arm
        code, out, err = ask("export", run_id[:10], str(target))
        assert code == 0, err
        assert run_id in out
        model = ledger.model_of(run_id)
        assert model is not None
        theirs = SentenceTransformer(str(target), device="cpu").encode(texts)
        np.testing.assert_allclose(theirs, Encoder.load(model).encode(texts), atol=1e-5)
        assert ask("export", run_id, str(target))[0] == 2  # never over what is there


def test_export_names_what_it_cannot_find(ask: Ask, tmp_path: Path) -> None:
    code, out, err = ask("export", "zzzz", str(tmp_path / "model"))
    assert (code, out) == (2, "")
    assert "zzzz: none begins so" in err


def test_why_leads_from_a_verdict_to_files(ask: Ask) -> None:
    code, out, _ = ask("why", "small.yaml", "H1")
    assert code == 0
    assert out.count("delta ") == 3
    files = re.findall(r"(\S+/result\.json)", out)
    assert len(files) == 6
    assert all(Path(file).is_file() for file in files)
    code, _, err = ask("why", "small.yaml", "H9")
    assert code == 2
    assert "H1, H2" in err


def test_a_passport_is_verified_and_names_a_changed_digit(
    ask: Ask, finished: dict[str, Any], tmp_path: Path
) -> None:
    passport = tmp_path / "small.passport"
    code, _, err = ask("report", "small.yaml", "--passport", str(passport))
    digest = hashlib.sha256(passport.read_bytes()).hexdigest()
    assert (code, f"publish   sha256 {digest}" in err) == (0, True)
    (declared,) = re.findall(r"^declared  ([0-9a-f]{64}) ", finished["err"], re.M)
    code, out, _ = ask("verify", str(passport), "--declared", declared)
    assert (code, "all agree" in out, digest in out) == (0, True, True)
    changed = tmp_path / "changed.passport"
    with zipfile.ZipFile(passport) as read, zipfile.ZipFile(changed, "w") as write:
        for name in read.namelist():
            content = read.read(name)
            if name == "findings.json":
                findings = json.loads(content)
                findings["findings"][0]["verdict"]["delta_mean"] += 1e-6
                content = json.dumps(findings).encode()
            write.writestr(name, content)
    code, out, _ = ask("verify", str(changed))
    assert code == 1
    assert "findings[H1].verdict.delta_mean" in out
    (tmp_path / "not.zip").write_text("no")
    assert ask("verify", str(tmp_path / "not.zip"))[0] == 2


def test_a_claim_added_after_the_first_run_is_exploratory(ask: Ask, place: Path) -> None:
    study = (place / "small.yaml").read_text()
    late = "  - {claim: X1, treatment: M1, control: B0, metric: t2d/mrr, expect: better}\n"
    try:
        (place / "small.yaml").write_text(study.replace("resources:", f"{late}resources:"))
        claims = {claim["claim"]: claim for claim in json.loads(ask("report", "small.yaml", "--json")[1])}
    finally:
        (place / "small.yaml").write_text(study)
    assert claims["X1"]["exploratory"]
    assert not claims["H1"]["exploratory"]
    assert claims["H1"]["family_size"] == 2


def test_an_audit_counts_the_entries_and_names_the_damaged(ask: Ask, place: Path) -> None:
    code, out, _ = ask("audit")
    entries = Ledger(place / "ledger").entries()
    assert (code, out) == (
        0,
        f"{place}/ledger: {len(entries)} sealed entries as their runs wrote them, 0 damaged\n",
    )
    entry = min(entries)
    file = place / "ledger" / entry / "result.json"
    intact = file.read_bytes()
    try:
        file.write_bytes(intact.replace(b'"attempt": 1', b'"attempt": 2'))
        code, out, _ = ask("audit")
        assert code == 1
        assert f"{entry}/result.json: it is not as the run wrote it" in out
        assert f"semray set-aside {entry}" in out
        assert f"{len(entries) - 1} sealed entries as their runs wrote them, 1 damaged" in out
        code, out, _ = ask("audit", "--json")
        found = json.loads(out)
        assert code == 1
        assert (found["sealed"], found["unsealed"], found["damaged"]) == (len(entries) - 1, 0, 1)
        assert [*found["entries"]] == [entry]
    finally:
        file.write_bytes(intact)


def test_a_study_with_a_task_more_trains_nothing_though_its_driver_is_killed(ask: Ask, place: Path) -> None:
    """Two drivers, the first of which is killed amid the scores, leave every training as it was, and score it."""
    more = (place / "small.yaml").read_text().replace("[t2d, geometry]", "[t2d, geometry, stress]")
    (place / "stressed.yaml").write_text(more)
    ledger, before = Ledger(place / "ledger"), trainings(place)
    runs = {run_id for run_id in before if ledger.training(run_id).run.seed in (0, 1, 2, None)}
    assert len(runs) == 7
    scored = ledger.entries()

    words = ["run", "stressed.yaml", "--lanes", "1"]
    command = [sys.executable, "-m", "orchestration", *words, "--ledger", "ledger"]
    driver = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: ledger.entries() > scored or driver.poll() is not None)
    left = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    for process in left:  # Ray's own are a minute behind their driver
        with suppress(psutil.NoSuchProcess):
            process.kill()
    halfway = ledger.entries()
    assert len(halfway - scored) < len(runs)

    assert ask(*words)[0] == 0
    new = ledger.entries() - scored
    assert {run_of(entry) for entry in new} == runs
    assert {ledger.scores(entry).run.tasks.keys() == {"stress"} for entry in new} == {True}
    assert len(new) == len(runs)
    assert trainings(place) == before


def trainings(place: Path) -> dict[str, dict[str, int]]:
    """Of every training in the ledger, its files and when each was written."""
    folders = [path for path in (place / "ledger").iterdir() if RUN_ID.fullmatch(path.name)]
    return {
        folder.name: {str(file): file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
        for folder in folders
    }


def test_models_are_pruned_when_told_to(ask: Ask, place: Path) -> None:
    """First it says what would go; then the best seed of each arm stays, and all scores; then none."""
    ledger = Ledger(place / "ledger")

    def models() -> dict[str, tuple[str, int | None]]:
        runs = {path.parent.name: ledger.training(path.parent.name).run for path in place.glob("ledger/*/model")}
        return {run_id: (run.arm, run.seed) for run_id, run in runs.items() if run.seed in range(3)}

    before = models()
    assert len(before) == 6
    code, _, err = ask("prune", "small.yaml")
    assert (code, "accepted: `--models best` or `--models none`" in err) == (2, True)
    code, out, _ = ask("prune", "choosy.yaml")
    assert code == 0
    assert "4 models, " in out
    assert "nothing is without --yes" in out
    assert models() == before

    assert ask("run", "choosy.yaml")[0] == 0  # all is done: it trains nothing, and keeps the best
    rows = json.loads(ask("report", "small.yaml", "--json")[1])[0]["per_seed"]
    best = max(rows, key=lambda row: row["treatment"])["seed"]
    assert ("B1", best) in models().values()
    assert sorted(arm for arm, _ in models().values()) == ["B1", "M1"]

    found = json.loads(ask("prune", "small.yaml", "--models", "none", "--yes", "--json")[1])
    assert found["deleted"]
    assert found["models"].keys() < before.keys()
    assert len(found["models"]) == 2
    assert found["bytes"] == sum(found["models"].values()) > 1000
    assert models() == {}
    assert ask("audit")[0] == 0
    assert json.loads(ask("report", "small.yaml", "--json")[1])[0]["per_seed"] == rows
    more = (place / "small.yaml").read_text().replace("[t2d, geometry]", "[t2d, geometry, d2t]")
    (place / "more.yaml").write_text(more)
    out = ask("plan", "more.yaml")[1]
    assert "scores  1 run of these is trained, and only scored" in out  # B0, which needs no model
    assert "scores  6 runs of these trained before; the models are gone, so they train again" in out


def test_sync_again_adds_nothing(ask: Ask) -> None:
    code, out, err = ask("sync", "small.yaml", "--json")
    assert code == 0, err
    assert (json.loads(out)["new"], json.loads(out)["updated"]) == (0, 0)


def test_doctor_answers_every_question(ask: Ask) -> None:
    _, out, _ = ask("doctor", "--json")
    answers = {answer["name"]: answer for answer in json.loads(out)}
    assert answers["torch"]["ok"]
    assert answers["all-MiniLM-L6-v2"]["ok"]
    assert all(answer["found"] for answer in answers.values())
