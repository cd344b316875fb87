"""Which models of a study stay, and what a task that comes later needs of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.described import describe
from orchestration.plan.kept_models import deciding_metric, models_to_remove
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from tests.results import finish

STUDY = """
question: Which models stay?
family: concept
backbones: [tiny]
seeds: 3
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  B1-noHN: {hard_negatives: false}
evaluate: [t2d, geometry]
"""
CLAIM = """
compare:
  - {claim: H1, treatment: B1, control: B0, metric: geometry/anisotropy, expect: worse}
"""
FACTS = Facts(
    backbones={"tiny": "b"}, corpus="c", tasks={"t2d": "t", "geometry": "g", "d2t": "d"}, precision="fp32"
)
BEST = {"B1": 2, "B1-noHN": 0}  # arm -> the seed with the largest figures
WITHOUT = ("B1", 0)  # arm and seed of a run whose anisotropy is no number


def write_model(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"12345")


def finished(folder: Path, text: str) -> tuple[Plan, Ledger]:
    """A study whose every run is done: each figure is the larger, the nearer its seed is to the arm's best.

    One is no number, and is not the best.
    """
    path, ledger = folder / "study.yaml", Ledger(folder / "ledger")
    path.write_text(text)
    runs = plan(read_study(path), FACTS).runs
    for run in runs:
        worth = 0.0 if run.seed is None else 0.9 - 0.1 * abs(run.seed - BEST[run.arm])
        scores = [
            Score(metric="t2d/recall@10", value=worth),
            Score(
                metric="geometry/anisotropy",
                value=math.nan if (run.arm, run.seed) == WITHOUT else worth,
                larger_is_better=False,
            ),
        ]
        finish(ledger, run, scores, **({} if run.seed is None else {"save_model": write_model}))
    return plan(read_study(path), FACTS, ledger.entries()), ledger


@pytest.mark.parametrize(
    ("text", "metric", "stay"),
    [
        (STUDY, "t2d/recall@10", {("B1", 2), ("B1-noHN", 0)}),
        (STUDY + CLAIM, "geometry/anisotropy", {("B1", 1), ("B1-noHN", 2)}),  # of which less is better
    ],
)
def test_the_best_seed_of_each_arm_stays(
    tmp_path: Path, text: str, metric: str, stay: set[tuple[str, int]]
) -> None:
    done, ledger = finished(tmp_path, text)
    assert deciding_metric(done.study) == metric
    assert models_to_remove(done, ledger, "keep") == ()
    assert len(models_to_remove(done, ledger, "none")) == 6
    for run in models_to_remove(done, ledger, "best"):
        assert ledger.model_size(run) == 5
        ledger.drop_model(run)
    assert {(run.arm, run.seed) for run in done.runs if ledger.model(run) is not None} == stay
    assert models_to_remove(done, ledger, "best") == ()
    assert {(run.arm, run.seed) for run in models_to_remove(done, ledger, "none")} == stay
    assert plan(done.study, FACTS, ledger.entries()).left == ()


def test_a_plan_says_what_would_train_again(tmp_path: Path) -> None:
    """Two runs of six lost their model; B0, which is not trained, needs none."""
    done, ledger = finished(tmp_path, STUDY)
    lost = [run for run in done.runs if run.arm == "B1"][:2]
    for run in lost:
        ledger.drop_model(run)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("geometry]", "geometry, d2t]"))
    more = plan(read_study(path), FACTS, ledger.entries())
    assert more.to_score == more.runs
    words = describe(replace(more, gone=frozenset(run.id for run in lost)))
    assert "scores  5 runs of these are trained, and only scored" in words
    assert "scores  2 runs of these trained before; the models are gone, so they train again" in words
    assert "scores" not in describe(done)
