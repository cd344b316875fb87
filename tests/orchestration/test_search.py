"""Searches on a real Ray: what is asked for, what is raced out, and that a search goes on as if never killed.

The run bodies below score a point by its settings and its seed; nothing is trained.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.scores import Score
from orchestration.cluster import connected
from orchestration.lane import Body
from orchestration.ledger import Ledger
from orchestration.plan import Facts
from orchestration.run import Job, Result, Run
from orchestration.search import Searched, Selection, Trial, searched, selections
from orchestration.search_run import run_search
from orchestration.study import Study
from trainers.world import World

pytestmark = pytest.mark.timeout(180)

STUDY = """\
question: Which margin?
family: concept
backbones: [tiny]
seeds: 4
train: {steps: 10}
arms:
  B1: {hard_negatives: true}
  B1-noHN: {}
evaluate: [t2d]
search:
  space: concept
  arms: [B1]
  dimensions: {hn_margin: {low: 0.1, high: 0.4}, temperature: all}
  trials: 12
  startup: 4
  objective: {metric: dev/t2d/mrr, mode: max}
  seeds: [100, 101, 102]
  RACE
resources: {lanes: LANES, retries: 0}
"""
METRICS = ("dev/t2d/recall@1", "dev/t2d/recall@5", "dev/t2d/recall@10", "dev/t2d/recall@50", "dev/t2d/mrr")


@pytest.fixture(scope="module", autouse=True)
def ray_of_two() -> Iterator[None]:
    import ray

    with connected(2):
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield


def quality(run: Run) -> float:
    """Best at a margin of 0.3 and a temperature of 0.03; all points share a seed's luck."""
    seed = run.seed or 0
    luck = np.random.default_rng(seed).normal(0, 0.05) + np.random.default_rng([seed, 1]).normal(0, 0.002)
    margin, temperature = run.settings["hn_margin"], run.settings["temperature"]
    return float(0.5 - (margin - 0.3) ** 2 - 0.05 * math.log(temperature / 0.03) ** 2 + luck)


def scored(job: Job, world: World) -> Iterator[tuple[Run, Result]]:
    for run in job.runs:
        yield run, Result(scores=[Score(metric=name, value=quality(run)) for name in METRICS])


def fragile(job: Job, world: World) -> Iterator[tuple[Run, Result]]:
    """Diverges beyond a margin of 0.3, at the second seed."""
    for run in job.runs:
        if run.settings["hn_margin"] > 0.3 and run.seed == 101:
            raise RuntimeError("loss is nan")
        yield run, Result(scores=[Score(metric=name, value=quality(run)) for name in METRICS])


def selection(folder: Path, lanes: int = 1, race: str = "race: 0.1", **changes: Any) -> Selection:
    path = folder / "margins.yaml"
    path.write_text(STUDY.replace("LANES", str(lanes)).replace("RACE", race))
    study = Study.load(path)
    assert study.search is not None
    study = replace(study, search=replace(study.search, **changes))
    (found,) = selections(study, Facts(backbones={"tiny": "b"}, corpus="c", precision="fp32"))
    return found


def go(selection: Selection, ledger: Ledger, body: Body = scored) -> tuple[Searched, list[tuple[Trial, str]]]:
    told: list[tuple[Trial, str]] = []
    with ledger.drive("margins"):
        run_search(
            selection,
            ledger,
            on_event=lambda event: None,
            on_change=lambda board, trial, words: told.append((trial, words)),
            body=body,
            warm=(),
        )
    return searched(selection, ledger), told


def test_a_search_finds_what_is_there_and_spends_seeds_where_they_matter(tmp_path: Path) -> None:
    chosen = selection(tmp_path)
    found, told = go(chosen, Ledger(tmp_path / "ledger"))
    assert len(found.trials) == 12
    assert found.trials[0].point == {"temperature": 0.05, "hn_margin": 0.2}
    assert found.best is not None
    assert len(found.best.scores) == 3
    assert found.best.mean() > found.trials[0].mean()
    stopped = [trial.number for trial, words in told if words]
    assert stopped
    assert all(len(found.trials[number].scores) < 3 for number in stopped)
    assert found.spent == sum(len(trial.scores) for trial in found.trials) < 36
