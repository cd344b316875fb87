"""What is killed between a run's training and its scores is not trained again: its model is there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.cluster import connected
from orchestration.lanes.events import Event, Outcome, RunFailed
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.study.blocks import Resources
from orchestration.study.run import Job, Result, Run, Scored, Trained
from tests.waiting import until
from trainers.engine.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

DRIVER = """
import sys
from pathlib import Path
import ray
from tests.e2e import test_half_done as half_done
from orchestration.lanes.cluster import connected
with connected(1):
    ray.cloudpickle.register_pickle_by_value(half_done)
    half_done.go(Path(sys.argv[1]))
"""


def make_run(folder: Path) -> Run:
    return Run(
        family="concept",
        arm="A",
        backbone="tiny",
        seed=3,
        settings={},
        data={"folder": str(folder)},
        tasks={"sum": "rows", "product": "rows"},
        defining={},
        backbone_fingerprint="b",
        corpus_fingerprint="c",
    )


def half_done(job: Job, world: World) -> Iterator[Result]:
    """Trains four numbers; scores their sum, then stands still before their product until it is killed, once."""
    from safetensors.numpy import load_file, save_file

    (run,) = job.runs
    folder = Path(run.data["folder"])
    if run.id in job.models:
        weights = load_file(job.models[run.id] / "model.safetensors")["weight"]
        (folder / "read").open("a").write(f"{[*run.tasks]}\n")
    else:
        (folder / "trained").open("a").write("once\n")
        weights = np.random.default_rng().normal(size=4).astype(np.float32)  # no two trainings are alike
        yield Trained(run=run, save_model=lambda to: save_file({"weight": weights}, str(to / "model.safetensors")))
    figures = {"sum": weights.sum(), "product": weights.prod()}
    for task in run.tasks:
        if task == "product" and run.id not in job.models:
            (folder / "pid.part").write_text(str(os.getpid()))
            (folder / "pid.part").rename(folder / "pid")  # whole, or not there
            while True:
                time.sleep(0.05)
        yield Scored(run=run, task=task, scores=[Score(metric=task, value=float(figures[task]))])


def go(folder: Path, kill: bool = False) -> tuple[Outcome, list[Event]]:
    """Launch the run; kill its lane as soon as the ledger holds its training and its first score."""
    ledger, run, events = Ledger(folder / "ledger"), make_run(folder), list[Event]()

    def hear(event: Event) -> None:
        events.append(event)

    with ledger.drive("study"):
        killed = (
            subprocess.Popen([sys.executable, "-c", WATCH, ledger.url, run.entries[1], str(folder / "pid")])
            if kill
            else None
        )
        outcome = launch(
            [Job(runs=(run,))],
            ledger=ledger,
            resources=Resources(lanes=1, retries=1),
            on_event=hear,
            body=half_done,
            warm=(),
        )
        assert killed is None or killed.wait() == 0
    return outcome, events


WATCH = """
import os, signal, sys, time
while not os.path.isdir(os.path.join(sys.argv[1], sys.argv[2])) or not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
os.kill(int(open(sys.argv[3]).read()), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def ray_of_one() -> Iterator[None]:
    import ray

    with connected(1):
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield


def all_of_one_training(folder: Path) -> None:
    """The figures are those of the saved model, which was trained once, and only what lacked was scored from it."""
    from safetensors.numpy import load_file

    ledger, run = Ledger(folder / "ledger"), make_run(folder)
    assert ledger.holds(run)
    assert ledger.failed() == {}
    assert (folder / "trained").read_text() == "once\n"
    assert (folder / "read").read_text() == "['product']\n"
    model = ledger.model(run)
    assert model is not None
    weights = load_file(model / "model.safetensors")["weight"]
    values = {name: metric.value for name, metric in ledger.record(run).metrics.items()}
    assert values == {"sum": float(weights.sum()), "product": float(weights.prod())}
    assert os.listdir(Path(ledger.url) / ".staging") == []


def test_a_lane_that_is_killed(tmp_path: Path) -> None:
    outcome, events = go(tmp_path, kill=True)
    assert outcome.finished == (make_run(tmp_path).id,)
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert failed.retrying
    all_of_one_training(tmp_path)


def test_a_driver_that_is_killed(tmp_path: Path) -> None:
    run, ledger = make_run(tmp_path), Ledger(tmp_path / "ledger")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    root = str(Path(__file__).resolve().parents[2])
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)], cwd=root, env={**ours, "PYTHONPATH": root}
    )
    until(lambda: ledger.has(run.entries[1]), 120)
    left = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    for process in left:  # Ray's own are a minute behind their driver
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert ledger.lacking(run) == (run.entry("product"),)
    outcome, events = go(tmp_path)
    assert outcome.finished == (run.id,)
    assert not any(isinstance(event, RunFailed) for event in events)
    all_of_one_training(tmp_path)
