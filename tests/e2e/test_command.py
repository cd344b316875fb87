"""A script that knows nothing of semray, killed with its lane and its driver, ends as when a person starts it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from orchestration.ledger.ledger import Ledger
from tests.tiny import tiny_backbone
from tests.waiting import until
from trainers.engine.world import GROUP

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "script"
STEPS = 120  # some seconds, so that a run with a checkpoint is caught before it ends


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable, value in {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "SEMRAY_CACHE": str(tmp_path / "c"),
    }.items():
        monkeypatch.setenv(variable, value)
    for name in ("train.py", "pairs.tsv"):
        shutil.copy(EXAMPLE / name, tmp_path)
    tiny_backbone(tmp_path / "tiny", layers=2)
    text = (EXAMPLE / "mine.yaml").read_text().replace("all-MiniLM-L6-v2", str(tmp_path / "tiny"))
    text = text.replace("seeds: 8", "seeds: 2").replace("--steps, 20", f"--steps, {STEPS}, --save-steps, 4")
    (tmp_path / "mine.yaml").write_text(text + "resources: {lanes: 2, retries: 3}\n")
    return tmp_path


def semray(place: Path, ledger: str) -> subprocess.Popen[bytes]:
    words = ["run", "mine.yaml", "--ledger", ledger, "--mlflow", f"sqlite:///{place}/{ledger}.db"]
    with (place / f"{ledger}.said").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "orchestration", *words], cwd=place, stdout=said, stderr=said
        )


def scripts(below: psutil.Process) -> list[psutil.Process]:
    """The scripts at work: their processes, not the supervisors whose last words are theirs."""
    found = []
    for one in below.children(recursive=True):
        try:
            words = one.cmdline()
        except psutil.Error:
            continue
        if "train.py" in words and not any("supervisor.py" in word for word in words):
            found.append(one)
    return found


def midway(place: Path) -> bool:
    """Some run has a checkpoint, and is not done."""
    return any(place.glob("troubled/.scratch/*/out/checkpoints/checkpoint-*/trainer_state.json"))


def by_hand(place: Path, loss: str, seed: int) -> Path:
    """The folder that the script fills when nobody but a person starts it."""
    out = place / "by-hand"
    words = ["--model", str(place / "tiny"), "--pairs", "pairs.tsv", "--loss", loss, "--learning-rate", "2e-05"]
    words += ["--steps", str(STEPS), "--save-steps", "4", "--seed", str(seed), "--out", str(out)]
    ours = {name: value for name, value in os.environ.items() if name not in GROUP}  # of a test that trained here
    done = subprocess.run(
        [sys.executable, "train.py", *words], cwd=place, env=ours, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def gone(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


def test_killed_with_its_lane_and_its_driver_it_ends_as_by_hand(place: Path) -> None:
    driver = semray(place, "troubled")
    try:
        until(lambda: midway(place) or driver.poll() is not None)
        watched = scripts(psutil.Process(driver.pid))
        lanes = [
            p for p in psutil.Process(driver.pid).children(recursive=True) if p.name().startswith("ray::Lane")
        ]
        busy = next(lane for lane in lanes if scripts(lane))
        its_own = scripts(busy)
        busy.kill()
        until(lambda: gone(its_own), seconds=20)
    finally:
        driver.kill()
        driver.wait()
    until(lambda: gone(watched), seconds=30)
    again = semray(place, "troubled")
    assert again.wait() == 0, (place / "troubled.said").read_text()[-3000:]

    ledger = Ledger(place / "troubled")
    resumed = [
        run for run in ledger.ids() if "going on from" in (place / f"troubled/{run}/model/command.log").read_text()
    ]
    assert resumed
    run = ledger.training(resumed[0]).run
    assert run.seed is not None
    out = by_hand(place, run.settings["values"]["loss"], run.seed)
    with (out / "scores.csv").open() as file:
        expected = {row["item"]: float(row["score"]) for row in csv.DictReader(file)}
    (scores,) = (entry for entry in ledger.entries() if entry.startswith(f"{run.id}."))
    items = ledger.items(scores).to_pydict()
    assert dict(zip(items["item_id"], items["value"], strict=True)) == expected
    curve = [row["step"] for row in ledger.curve_of(run.id).to_pylist() if row["name"] == "loss"]
    assert curve == list(range(1, STEPS + 1))

    words = ["report", "mine.yaml", "--ledger", "troubled", "--json"]
    said = subprocess.run(
        [sys.executable, "-m", "orchestration", *words], cwd=place, capture_output=True, text=True, check=True
    )
    (verdict,) = json.loads(said.stdout)
    assert (verdict["claim"], len(verdict["per_seed"])) == ("H1", 2)
