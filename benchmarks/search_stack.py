"""What it buys a search that points of a stacked family train as one model: at_once 8 against one point at a time.

    SEMRAY_DATA=... python benchmarks/search_stack.py

Real runs of studies/difficulty_search.yaml (STS-B, without racing, points drawn at random), in one lane; both ways
come to the same points and, to the last digit, the same scores.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tables import save

from corpora.store.errors import CorpusError
from orchestration.families.difficulty import prepared
from orchestration.lanes.events import Event, LaneReady, RunFinished
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts
from orchestration.reading.read_study import read_study
from orchestration.search.drive import run_search
from orchestration.search.trials import Searched, Selection, searched, selections

POINTS, ROUNDS = 24, 2
STUDY = Path(__file__).resolve().parents[1] / "studies" / "difficulty_search.yaml"


def selection(at_once: int) -> Selection:
    study = read_study(STUDY)
    assert study.search is not None
    search = replace(study.search, trials=POINTS, budget=None, sampler="random", race=0.0, at_once=at_once)
    study = replace(study, search=search, resources=replace(study.resources, lanes=1))
    (found,) = selections(study, gather_facts(study))
    return found


def timed(at_once: int) -> tuple[float, Searched]:
    """Seconds from the lane's being ready to the last run, and the table."""
    ready, last = 0.0, 0.0

    def hear(event: Event) -> None:
        nonlocal ready, last
        match event:
            case LaneReady():
                ready = time.perf_counter()
            case RunFinished():
                last = time.perf_counter()

    with tempfile.TemporaryDirectory() as name:
        ledger, chosen = Ledger(Path(name) / "ledger"), selection(at_once)
        with ledger.drive(chosen.study.name):
            run_search(chosen, ledger, on_event=hear, on_change=lambda board, trial, words: None)
        return last - ready, searched(chosen, ledger)


def main() -> None:
    try:
        chosen = selection(1)
        prepared(chosen.study.data, chosen.backbone)  # embedded once, and not part of the time
    except CorpusError as missing:
        print(f"not measured: {missing}")
        return
    rows, tables = [], []
    for number in range(ROUNDS):
        seconds = {}
        for at_once in (1, 8):
            seconds[at_once], found = timed(at_once)
            tables.append([trial.scores for trial in found.trials])
        runs = POINTS * len(chosen.seeds)
        rows.append(
            {
                "round": number + 1,
                "one at a time, s a run": seconds[1] / runs,
                "eight at once, s a run": seconds[8] / runs,
                "ratio": seconds[1] / seconds[8],
            }
        )
    assert all(table == tables[0] for table in tables)
    save(
        "search_stack",
        f"A search over {POINTS} points × {len(chosen.seeds)} seeds of a stacked family, one lane",
        rows,
        [
            "All scores of all rounds are equal to the last digit.",
            "Wall time from the lane's being ready to the last run; embeddings were cached.",
            f"Load average at the end: {os.getloadavg()[0]:.1f}.",
        ],
        packages=("ray", "optuna", "torch"),
    )


if __name__ == "__main__":
    main()
