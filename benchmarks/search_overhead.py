"""What a trial of a search costs beyond its runs: runs that do nothing, in one lane.

    python benchmarks/search_overhead.py

A run takes its way through trial, exchange, driver, lane and ledger, and back. `launch` does as many of them from
a queue, without a search: the difference is what Tune, Optuna and the exchange add.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tables import save

from evaluators.metrics.scores import Score
from orchestration.lanes.events import Event, RunFinished
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts
from orchestration.reading.read_study import read_study
from orchestration.search.drive import run_search
from orchestration.search.trials import Selection, selections
from orchestration.study.run import Job, Result, Scored, Trained
from trainers.engine.world import World

TRIALS, ROUNDS = 60, 3
STUDY = """
question: What does a trial cost?
family: concept
backbones: [none]
arms:
  B1: {{hard_negatives: true}}
evaluate: [t2d]
search:
  space: concept
  arms: [B1]
  trials: {trials}
  objective: {{metric: dev/t2d/mrr, mode: max}}
  seeds: {seeds}
  race: 0
resources: {{lanes: 1}}
"""


def nothing(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        yield Trained(run=run)
        score = Score(metric="dev/t2d/mrr", value=run.settings["temperature"])
        yield Scored(run=run, task="dev/t2d", scores=[score])


class Clock:
    """When runs ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self.ends.append(time.perf_counter())

    @property
    def seconds_per_run(self) -> float:
        """From the end of the first run to that of the last: without the start of Ray, Tune and the lane."""
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)


def selection(folder: Path, trials: int, seeds: int) -> Selection:
    path = folder / "cost.yaml"
    path.write_text(STUDY.format(trials=trials, seeds=list(range(100, 100 + seeds))))
    facts = Facts(backbones={"none": "b"}, corpus="c", tasks={"t2d": "t", "dev/t2d": "d"}, precision="fp32")
    (found,) = selections(read_study(path), facts)
    return found


def searched(trials: int, seeds: int) -> float:
    """Seconds per trial."""
    with tempfile.TemporaryDirectory() as name:
        ledger, clock = Ledger(Path(name) / "ledger"), Clock()
        chosen = selection(Path(name), trials, seeds)
        with ledger.drive("cost"):
            run_search(
                chosen, ledger, on_event=clock, on_change=lambda board, trial, words: None, body=nothing, warm=()
            )
    return clock.seconds_per_run * seeds


def launched(runs: int) -> float:
    """Seconds per run from a queue."""
    with tempfile.TemporaryDirectory() as name:
        ledger, clock = Ledger(Path(name) / "ledger"), Clock()
        chosen = selection(Path(name), runs, 1)
        jobs = [Job(runs=(replace(chosen.run(0, {}, 100), seed=seed),)) for seed in range(runs)]
        with ledger.drive("cost"):
            launch(jobs, ledger=ledger, resources=chosen.study.resources, on_event=clock, body=nothing, warm=())
    return clock.seconds_per_run


def main() -> None:
    rows = []
    for seeds in (1, 3):
        trial = min(searched(TRIALS, seeds) for _ in range(ROUNDS))
        queued = min(launched(TRIALS * seeds) for _ in range(ROUNDS)) * seeds
        rows.append(
            {
                "seeds of a trial": seeds,
                "search, s a trial": trial,
                "queue, s for as many runs": queued,
                "added by the search, s": trial - queued,
            }
        )
    save(
        "search_overhead",
        f"What a trial costs beyond its runs: {TRIALS} trials of empty runs, one lane",
        rows,
        [
            f"Wall time, the best of {ROUNDS} rounds, from the end of the first run to that of the last; what "
            "comes once for a search, the start of Ray, Tune and the lane, is not in it.",
            "The machine was shared with other work.",
            "TPE suggests from the eleventh trial on; its time is in the search's column.",
        ],
        packages=("ray", "optuna"),
    )


if __name__ == "__main__":
    main()
