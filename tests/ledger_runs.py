"""Made-up runs and what they leave in a ledger, and what may lie where its files belong."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Run, Scored, Trained
from tests.results import finish
from trainers.engine.world import Progress

ROWS = {"t2d": "r" * 8, "geometry": "s" * 8}  # task -> fingerprint of what it is measured on


def make_run(seed: int = 0) -> Run:
    return Run(
        family="concept",
        arm="B1",
        backbone="tiny",
        seed=seed,
        settings={"steps": 2, "betas": [0.9, 0.99]},
        data={"lexicons": ["wordnet"]},
        tasks=dict(ROWS),
        defining={"steps": 2},
        backbone_fingerprint="b" * 8,
        corpus_fingerprint="c" * 8,
    )


def save_model(folder: Path) -> None:
    (folder / "0_part").mkdir()
    (folder / "0_part" / "weights.safetensors").write_bytes(b"\x00\x01")
    (folder / "config.json").write_text("{}")


def scores(value: float = 0.75) -> list[Score]:
    recall = Score(
        metric="t2d/recall@10",
        value=value,
        aggregate="mean",
        item_ids=["i1", "i2"],
        group_ids=["g", "g"],
        values=np.array([1.0, 0.5]),
    )
    auc = Score(
        metric="t2d/auc",
        value=1.0,
        aggregate="auc",
        item_ids=["a", "b"],
        values=np.array([0.1, 0.9]),
        gold=np.array([0, 1]),
    )
    return [recall, auc, Score(metric="geometry/spread", value=float("nan"), larger_is_better=False)]


CURVE = (
    Progress(step=1, steps=2, loss=2.0, terms={"info": 2.0}, learning_rate=1e-3),
    Progress(step=2, steps=2, loss=1.5),
)


def training(run: Run) -> Trained:
    return Trained(run=run, curve=CURVE, seconds={"train": 1.5}, notes={"device": "cpu"}, save_model=save_model)


def scored(run: Run, value: float = 0.75) -> Scored:
    """The run's scores on its first task."""
    return Scored(run=run, task="t2d", scores=[score for score in scores(value) if "t2d" in score.metric])


def do(ledger: Ledger, run: Run, value: float = 0.75) -> int:
    """A whole run into the ledger; its attempt."""
    attempt = finish(ledger, run, scores(value), curve=CURVE, seconds={"train": 1.5}, save_model=save_model)
    assert ledger.holds(run)
    return attempt


def leave(place: Path, content: str) -> None:
    """Something where a file of the ledger belongs."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if content == "a folder":
        place.mkdir()
    elif content == "a pipe":
        os.mkfifo(place)
    else:
        place.write_text(content)


def checkpointed(ledger: Ledger, run: Run, elsewhere: Path) -> Path:
    """Lease a run and leave a checkpoint of it, as an attempt that goes on does. -> the folder of its checkpoints

    elsewhere: that folder where a ledger is remote.
    """
    attempt = ledger.lease(run.id)
    folder = ledger.scratch(run.id, attempt) or elsewhere
    (folder / "step-5").mkdir(parents=True, exist_ok=True)
    (folder / "step-5" / "weights").write_text("1")
    if ledger.remote:
        ledger.keep_checkpoint(run.id, attempt, folder)
    return folder
