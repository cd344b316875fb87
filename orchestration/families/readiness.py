"""What an encoder's study could only fail at later, looked for in its corpus before a lane starts.

Everything here raises ValueError naming the field, its value and what is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from corpora.store.records import ConceptCorpus
    from evaluators.tasks.task import Table
    from orchestration.study.study import Study

WIDTH = 8  # of the made-up vectors: whatever they are, the same figures come out


def check_layers(study: Study, backbones: Sequence[Path]) -> None:
    """A weighted readout mixes no more layers than each backbone has."""
    for name, arm in study.arms.items():
        for folder in backbones if arm.readout == "weighted" else ():
            depth = depth_of(folder)
            if arm.layers > depth:
                raise ValueError(
                    f"arms.{name}.layers = {arm.layers}\n  accepted: up to {depth}, the layers of {folder.name}"
                )


def depth_of(backbone: Path) -> int:
    """Layers of a backbone in hub format; configurations call them by several names (DistilBERT: n_layers)."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(backbone, local_files_only=True).num_hidden_layers


def check_batches(study: Study, corpus: ConceptCorpus) -> None:
    """Every trained arm can draw its batches, and its workers can share them."""
    from trainers.concept.batches import views_of

    for name, arm in study.arms.items():
        try:
            if arm.train:
                views_of(arm, corpus, study.resources.workers_per_run)
        except ValueError as error:
            raise ValueError(f"arms.{name}: {error}") from None


def check_metrics(study: Study, corpus: Any, tasks: Table, sizes: Sequence[str]) -> None:
    """Every task finds something to score, and every compared metric comes out. 0.2 s for the whole of WordNet.

    sizes: the fields of `data:` that decide what there is.
    """
    from evaluators.tasks.task import evaluate, metric_names

    for name in study.evaluate:
        if len(set(tasks[name].texts(corpus))) < 2:
            asked = ", ".join(f"{field} = {json.dumps(getattr(study.data, field))}" for field in sizes)
            raise ValueError(
                f"evaluate: {name}: the corpus holds no two texts for it\n"
                f"  accepted: tasks with texts of their own; `data:` says which: {asked}"
            )
    vectors = np.random.default_rng(0)
    scores = evaluate(
        tasks,
        study.evaluate,
        corpus,
        lambda texts: vectors.standard_normal((len(texts), WIDTH), np.float32),
    )
    claimable = metric_names(tasks, study.evaluate)
    found = [score.metric for score in scores if score.metric in claimable]
    missing = [comparison for comparison in study.compare if comparison.metric not in found]
    if missing:
        raise ValueError(
            f"compare: {missing[0].claim}: {missing[0].metric} has no figure in this corpus"
            f"\n  accepted: {', '.join(found)}"
        )
