"""A script that knows nothing of semray, killed with its lane and its driver, ends as when a person starts it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Run
from tests.tiny import tiny_backbone
from tests.waiting import until
from trainers.engine.world import GROUP

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
STEPS = 60  # some seconds, so that a run with a checkpoint is caught before it ends
LIGHT = """
question: Is a larger step better?
family: command
seeds: 1
data: {watch: [train.py], metrics: {accuracy: higher, loss: lower}}
train:
  run: [python, train.py, --seed, "{seed}", --learning_rate, "{lr}", --steps, 60, --out, "{out}"]
arms:
  small: {lr: 0.01}
  large: {lr: 0.02}
evaluate: [scores]
compare:
  - {claim: H1, treatment: large, control: small, metric: scores/accuracy, expect: better}
resources: {lanes: 2, retries: 3}
"""


def light(place: Path) -> str:
    """A script that resumes by itself and imports next to nothing; its study."""
    shutil.copy(ROOT / "tests" / "a_script.py", place / "train.py")
    return LIGHT


def example(place: Path) -> str:
    """The example that users of sentence-transformers would recognise; its study."""
    for name in ("train.py", "pairs.tsv"):
        shutil.copy(ROOT / "examples" / "script" / name, place)
    tiny_backbone(place / "tiny", layers=2)
    text = (ROOT / "examples" / "script" / "mine.yaml").read_text()
    text = text.replace("all-MiniLM-L6-v2", str(place / "tiny")).replace("seeds: 8", "seeds: 1")
    return (
        text.replace("--steps, 20", f"--steps, {STEPS}, --save-steps, 4") + "resources: {lanes: 2, retries: 3}\n"
    )


@pytest.fixture(params=[light, pytest.param(example, marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable, value in {
        "HF_HUB_OFFLINE": "1",
        "SEMRAY_CACHE": str(tmp_path / "c"),
    }.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "mine.yaml").write_text(request.param(tmp_path))
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
    own = "checkpoints/checkpoint-*/trainer_state.json", "checkpoint.json"
    return any(any(place.glob(f"troubled/.scratch/*/out/{name}")) for name in own)


def by_hand(place: Path, run: Run) -> Path:
    """The folder that the script fills when nobody but a person starts it."""
    out = place / "by-hand"
    out.mkdir()
    values = {**run.settings["values"], "seed": run.seed, "out": out, "backbone": place / "tiny"}
    words = [str(word).format(**values) for word in run.settings["run"]]
    ours = {name: value for name, value in os.environ.items() if name not in GROUP}  # of a test that trained here
    done = subprocess.run([sys.executable, *words[1:]], cwd=place, env=ours, capture_output=True, text=True)
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
    logs = {run: (place / f"troubled/{run}/model/command.log").read_text() for run in ledger.ids()}
    resumed = [run for run, log in logs.items() if "going on from" in log or "resuming after" in log]
    assert resumed
    run = ledger.training(resumed[0]).run
    out = by_hand(place, run)
    with (out / "scores.csv").open() as file:
        expected = {row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["item"]}
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
    assert (verdict["claim"], len(verdict["per_seed"])) == ("H1", 1)


DEAF = """\
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
daemon = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(daemon.pid, file=open("daemon", "w"), flush=True)
time.sleep(600)
"""
STAYING = """\
question: What stays of a script that hears no SIGTERM and leaves a daemon?
family: command
seeds: [0]
data: {watch: [train.py], metrics: {accuracy: higher}}
train: {run: [python, train.py, "{seed}"]}
arms: {one: {}}
evaluate: [scores]
resources: {lanes: 1, retries: 0}
"""


@pytest.mark.parametrize("end", [[signal.SIGKILL], [signal.SIGINT, signal.SIGINT]])
def test_what_left_its_session_ends_with_the_driver_too(end: list[signal.Signals], tmp_path: Path) -> None:
    """One that is killed, or asked to stop and then to stop at once: Ray ends the lanes."""
    (tmp_path / "train.py").write_text(DEAF)
    (tmp_path / "mine.yaml").write_text(STAYING)
    driver = semray(tmp_path, "ledger")
    until(lambda: (tmp_path / "daemon").is_file() and (tmp_path / "daemon").read_text() != "", seconds=60)
    daemon = psutil.Process(int((tmp_path / "daemon").read_text()))
    try:
        for number, heard in zip(end, ("importing what runs need", "stopping: "), strict=False):
            until(lambda words=heard: words in (tmp_path / "ledger.said").read_text())
            driver.send_signal(number)
        driver.wait()
        until(lambda: gone([daemon]), seconds=30)
    finally:
        driver.kill()
        if daemon.is_running():
            daemon.kill()
