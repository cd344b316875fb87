"""How a study takes at least 50 kills of driver, lane and MLflow server, and how long it needs after each.

    python benchmarks/faults.py

Every round runs one study of nine runs in a new ledger while something is killed at a random moment after a lane
got a run, and ends when the study has. Its figures must be those of the study left in peace, to the last digit.
Time to recover: from the kill until a lane gets its next run, or the study ends. What is killed on a cluster (a
node, the head) is in tests/e2e/test_cluster_day.py; disks and Ctrl-C are in tests/e2e/test_ledger_faults.py.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from tables import save

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from orchestration.ledger.ledger import Ledger
from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet
from tests.e2e.test_kills import (
    MANY,
    STUDY,
    Driver,
    Server,
    ended,
    figures,
    kill,
    leases,
    moved_on,
)
from tests.tiny import tiny_backbone
from tests.waiting import free_port, until

LEAST = 50
STEPS = 80
SEEDS, KILLS = MANY
RUNS = 1 + 2 * SEEDS  # one arm has no seeds


def prepared(folder: Path) -> None:
    """The study, its encoder and its WordNet."""
    (folder / "wordnet").mkdir()
    write_wordnet(folder / "wordnet", small_entries(), SMALL_EXCEPTIONS)
    backbone = tiny_backbone(folder / "tiny", layers=2)
    (folder / "kills.yaml").write_text(
        STUDY.format(seeds=SEEDS, steps=STEPS, backbone=backbone, wordnet=folder / "wordnet")
    )


def one_round(folder: Path, number: int, server: Server) -> tuple[list[tuple[str, float]], dict[str, object]]:
    """The kills of a round with the seconds that each cost, and the study's figures after it."""
    chance, ledger = random.Random(number), folder / f"ledger-{number}"
    driver, kills = Driver(folder, ["--ledger", str(ledger), "--mlflow", server.uri]), []
    with ended(driver):
        driver.start()
        for victim in chance.sample(KILLS, len(KILLS)):
            before = leases(ledger)
            until(lambda: moved_on(driver, ledger, before))  # noqa: B023  called within this turn alone
            threading.Event().wait(chance.uniform(0.0, 1.0))
            if not driver.running:
                break
            before, began = leases(ledger), time.monotonic()
            kill(victim, driver, server, chance)
            until(lambda: moved_on(driver, ledger, before))  # noqa: B023
            kills.append((victim, time.monotonic() - began))
        if driver.end() != 0:  # the MLflow server was away at the end: the next call catches up
            until(server.answers)
            driver.start()
            assert driver.end() == 0
    held = Ledger(ledger)
    assert len(held.entries()) == 2 * RUNS  # trained, and scored on one task
    assert held.failed() == {}
    return kills, figures(held)


def main() -> None:
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepared(folder)
        server = Server(folder, free_port())
        peace = Driver(folder, ["--ledger", str(folder / "peace"), "--mlflow", f"sqlite:///{folder}/peace.db"])
        with ended(peace, server):
            server.start()
            peace.start()
            assert peace.end() == 0
            undisturbed = figures(Ledger(folder / "peace"))
            kills: list[tuple[str, float]] = []
            rounds = 0
            while len(kills) < LEAST:
                done, found = one_round(folder, rounds, server)
                assert found == undisturbed, f"round {rounds}: other figures than in peace"
                kills, rounds = kills + done, rounds + 1
    rows = []
    for victim in sorted({victim for victim, _ in kills}):
        seconds = sorted(cost for killed, cost in kills if killed == victim)
        median, most = statistics.median(seconds), seconds[-1]
        rows.append({"killed": victim, "times": len(seconds), "seconds, median": median, "seconds, most": most})
    notes = [
        f"{len(kills)} kills (SIGKILL) in {rounds} rounds of one study of {RUNS} runs; after every round the "
        "figures of all runs were those of the study left in peace, to the last digit, each run once.",
        "Seconds from the kill until a lane got its next run or the study ended.",
    ]
    save("faults", "What kills cost a study", rows, notes, packages=("ray", "torch", "mlflow"))


if __name__ == "__main__":
    main()
