"""A study whose driver, lanes and MLflow server are killed at random moments ends like one that is left in peace."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.study.run import run_of
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone
from tests.waiting import free_port, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SEED = 20
# Seeds, and what is killed in random order; the server once more at the end
FEW = (2, ["driver", "lane", "server"])
MANY = (4, ["driver", "driver", "lane", "lane", "lane", "server"])
STEPS = 80
STUDY = """
question: Does a study that is killed again and again end with the same figures?
family: concept
backbones: [{backbone}]
seeds: {seeds}
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: {steps}, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
resources: {{lanes: 2, checkpoint_every: 5, retries: 5}}
"""


@dataclass
class Driver:
    """`semray run` as a person starts it, started again whenever it was killed."""

    folder: Path
    options: list[str]
    process: subprocess.Popen[bytes] | None = None
    killed: list[psutil.Process] = field(default_factory=list)  # all that died with it, or should have

    def start(self) -> None:
        command = [sys.executable, "-m", "orchestration", "run", "kills.yaml", *self.options]
        settings = {"SEMRAY_CACHE": str(self.folder / "cache")}
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, **settings}, stdout=said, stderr=said
            )

    def family(self) -> list[psutil.Process]:
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        assert self.process is not None
        self.killed += self.family()
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        assert self.process is not None
        return self.process.wait()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


@dataclass
class Server:
    """An MLflow server on loopback."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        database = ["--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db"]
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        artifacts = ["--artifacts-destination", str(self.folder / "artifacts")]
        settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "server").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *database, *place, *artifacts],
                env={**os.environ, **settings},
                stdout=said,
                stderr=said,
            )

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        assert self.process is not None
        for process in [
            *psutil.Process(self.process.pid).children(recursive=True),
            psutil.Process(self.process.pid),
        ]:
            process.kill()
        self.process.wait()


@contextmanager
def ended(*processes: Driver | Server) -> Iterator[None]:
    """Leave no process behind, whatever the test found."""
    try:
        yield
    finally:
        for process in processes:
            if process.process is not None and process.process.poll() is None:
                process.kill()


def kill_a_lane(driver: Driver, chance: random.Random) -> None:
    lanes = sorted((p for p in driver.family() if p.name().startswith("ray::Lane")), key=lambda p: p.pid)
    chance.choice(lanes).kill()


def leases(ledger: Path) -> int:
    return len(list(ledger.glob(".attempts/*/*")))


def moved_on(driver: Driver, ledger: Path, before: int) -> bool:
    return not driver.running or leases(ledger) > before


def disturb(driver: Driver, server: Server, ledger: Path, kills: Sequence[str], chance: random.Random) -> int:
    """Kill one thing after another, each at a random moment after a lane got a run; returns how many."""
    done = 0
    for victim in chance.sample(kills, len(kills)):
        until(partial(moved_on, driver, ledger, leases(ledger)))
        threading.Event().wait(chance.uniform(0.0, 1.0))
        if not driver.running:
            break
        kill(victim, driver, server, chance)
        done += 1
    return done


def kill(victim: str, driver: Driver, server: Server, chance: random.Random) -> None:
    """Kill a lane; or the driver or the server, which start again."""
    if victim == "lane":
        kill_a_lane(driver, chance)
        return
    process = driver if victim == "driver" else server
    process.kill()
    process.start()


def figures(ledger: Ledger) -> dict[str, object]:
    """All that is held of the study's runs, to the last digit."""
    return {entry: figures_of(ledger, entry) for entry in ledger.entries()}


def figures_of(ledger: Ledger, entry: str) -> object:
    """Of scores: the metrics and their items. Of a training: its curve, but for the speed."""
    assert ledger.audit(entry) is None
    if run_of(entry) != entry:
        return ledger.scores(entry).metrics, ledger.items(entry).to_pydict()
    return [row for row in ledger.curve_of(entry).to_pylist() if row["name"] != "sentences_per_second"]


def mirrored(uri: str) -> dict[str, tuple[dict[str, str], list[int]]]:
    """MLflow's entries by key: the figures but for times, as text (a NaN equals itself), and the steps of the loss
    curve."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    (experiment,) = (e for e in client.search_experiments() if e.name == "kills")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    entries = {
        run.data.tags["semray.run_key"]: (
            {
                name: repr(value)
                for name, value in run.data.metrics.items()
                if "second" not in name and not name.startswith("cost/")
            },
            [point.step for point in client.get_metric_history(run.info.run_id, "train/loss")],
        )
        for run in runs
    }
    assert len(entries) == len(runs), "an entry is in MLflow twice"
    assert all(run.info.status == "FINISHED" for run in runs)
    return entries


@pytest.mark.parametrize(
    ("seeds", "kills"), [FEW, pytest.param(*MANY, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_study_that_is_killed_again_and_again(
    seeds: int, kills: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 1 + 2 * seeds  # B0 has no seeds
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    backbone, wordnet = tiny_backbone(tmp_path / "tiny", layers=2), tmp_path / "wordnet"
    write_small_wordnet(wordnet)
    (tmp_path / "kills.yaml").write_text(
        STUDY.format(seeds=seeds, steps=STEPS, backbone=backbone, wordnet=wordnet)
    )
    peaceful, troubled = tmp_path / "peaceful", tmp_path / "troubled"
    server = Server(tmp_path, free_port())
    alone = ["--lanes", "1"]  # as many figures, of fewer processes
    peace = Driver(tmp_path, ["--ledger", str(peaceful), "--mlflow", f"sqlite:///{tmp_path}/peaceful.db", *alone])
    trouble = Driver(tmp_path, ["--ledger", str(troubled), "--mlflow", server.uri])
    with ended(peace, trouble, server):
        server.start()
        peace.start()
        assert peace.end() == 0
        trouble.start()
        assert disturb(trouble, server, troubled, kills, random.Random(SEED)) == len(kills)
        until(lambda: len(Ledger(troubled).entries()) == 2 * runs)
        server.kill()  # while the study is written to it
        trouble.end()
        server.start()
        until(server.answers)
        trouble.start()
        assert trouble.end() == 0

        undisturbed, disturbed = figures(Ledger(peaceful)), figures(Ledger(troubled))
        assert len(undisturbed) == 2 * runs  # trained, and scored on one task
        assert disturbed == undisturbed
        assert os.listdir(troubled / ".staging") == []
        assert Ledger(troubled).failed() == {}
        entries = mirrored(server.uri)
        assert entries == mirrored(f"sqlite:///{tmp_path}/peaceful.db")
        assert len(entries) == runs + 1 + 1  # the comparison and the study too
        assert sum(steps == [*range(1, STEPS + 1)] for _, steps in entries.values()) == runs - 1
        until(lambda: not any(process.is_running() for process in trouble.killed))
