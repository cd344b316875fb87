"""A search whose runs train nothing: a run's score follows from its settings and its seed.

python -m tests.searching FOLDER      # the search, into FOLDER/ledger
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.metrics.scores import Score
from orchestration.lanes.events import Event
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts
from orchestration.reading.read_study import read_study
from orchestration.search.trials import Searched, Selection, Trial, searched, selections
from orchestration.study.run import Job, Result, Run
from tests.results import results
from trainers.engine.world import Progress, World

STUDY = """\
question: Which margin?
family: concept
backbones: [tiny]
seeds: 4
train: {steps: 10}
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
evaluate: [t2d, pair_auc]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}
search:
  space: concept
  arms: [B1]
  dimensions: {hn_margin: {low: 0.1, high: 0.4}, temperature: all}
  trials: 12
  startup: 4
  objective: {metric: dev/t2d/mrr, mode: max}
  seeds: [100, 101, 102]
resources: {lanes: 1, retries: 0}
"""
# The same of a script: two arms, of which one is searched around.
RATES = """\
question: Which rate?
family: command
seeds: 6
data: {watch: [train.py], metrics: {accuracy: higher, dev/accuracy: higher}}
train: {run: [python, train.py, "{seed}", "{out}", "{lr}"]}
arms: {slow: {lr: 1.0e-3}, fast: {lr: 1.0e-1}}
evaluate: [scores]
search:
  space: command
  arms: [slow]
  dimensions: {lr: {low: 1.0e-3, high: 0.8, log: true}}
  trials: 2
  objective: {metric: dev/scores/accuracy, mode: max}
  seeds: [100]
"""
MRR, AUC = "dev/t2d/mrr", "dev/pair_auc"
ROWS = dict.fromkeys(("dev/t2d", "dev/d2t", "dev/pair_auc", "t2d", "pair_auc"), "rows")


def quality(run: Run) -> float:
    """Best at a margin of 0.3 and a temperature of 0.03; all points share a seed's luck."""
    seed = run.seed or 0
    luck = np.random.default_rng(seed).normal(0, 0.05) + np.random.default_rng([seed, 1]).normal(0, 0.002)
    margin, temperature = run.settings["hn_margin"], run.settings["temperature"]
    return float(0.5 - (margin - 0.3) ** 2 - 0.05 * math.log(temperature / 0.03) ** 2 + luck)


def worth(run: Run) -> list[Score]:
    """The quality of a run; with a larger margin the second figure is the better one."""
    return [Score(metric=MRR, value=quality(run)), Score(metric=AUC, value=run.settings["hn_margin"])]


def scored(job: Job, world: World) -> Iterator[Result]:
    for run in job.runs:
        yield from results(run, worth(run))


def selection(folder: Path, *, lanes: int = 1, metric: str = MRR, **changes: Any) -> Selection:
    """The search of the study above by this metric, some of its fields otherwise."""
    path = folder / "margins.yaml"
    path.write_text(STUDY.replace("lanes: 1", f"lanes: {lanes}").replace(f"metric: {MRR}", f'metric: "{metric}"'))
    study = read_study(path)
    assert study.search is not None
    study = replace(study, search=replace(study.search, **changes))
    (found,) = selections(study, Facts(backbones={"tiny": "b"}, corpus="c", tasks=ROWS, precision="fp32"))
    return found


def go(
    selection: Selection,
    ledger: Ledger,
    body: Any = scored,
    on_event: Callable[[Event], None] = lambda event: None,
) -> tuple[Searched, list[tuple[Trial, str]]]:
    """Search to the end; returns the table and what was told of each trial."""
    from orchestration.search.drive import run_search

    told: list[tuple[Trial, str]] = []
    with ledger.drive(selection.study.name):
        run_search(
            selection,
            ledger,
            on_event=on_event,
            on_change=lambda board, trial, words: told.append((trial, words)),
            body=body,
            warm=(),
        )
    return searched(selection, ledger), told


def climbing(
    job: Job, world: World, pause: Callable[[Run, int], float] = lambda run, step: 0.0
) -> Iterator[Result]:
    """As `scored`, with ten steps on the way there, the score being seen at some. pause: seconds after a step."""
    for run in job.runs:
        curve = []
        for step in range(1, 11):
            figures = {MRR: quality(run) - 1 + step / 10} if step in run.look_at else {}
            curve.append(Progress(step=step, steps=10, loss=1 / step, figures=figures))
            world.report(curve[-1])
            time.sleep(pause(run, step))
        yield from results(run, worth(run), curve=curve)


def slowly(job: Job, world: World) -> Iterator[Result]:
    """As `scored`, each run a moment later."""
    for run in job.runs:
        time.sleep(0.1)
        yield from results(run, worth(run))


if __name__ == "__main__":
    import ray

    from orchestration.lanes.cluster import connected

    with connected(1):
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        place = Path(sys.argv[1])
        go(selection(place), Ledger(place / "ledger"), slowly)
