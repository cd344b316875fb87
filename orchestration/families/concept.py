"""The concept family: one place for every expression of a concept, with hard negatives for what is nearly one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.concept.corpus import fingerprint, fingerprint_of_all, load
from corpora.concept.data import ConceptData
from evaluators.tasks.concept import tasks
from orchestration.families.encoders import EncoderFamily, of_arm
from search_spaces.concept import SPACE
from trainers.concept.settings import Settings, defining

if TYPE_CHECKING:
    from corpora.store.records import ConceptCorpus
    from orchestration.study.study import Study


def check_layers(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """A weighted readout mixes no more layers than each backbone has."""
    from trainers.encoders.backbones import depth_of

    for name, arm in study.arms.items():
        for folder in backbones if arm.readout == "weighted" else ():
            depth = depth_of(folder)
            if arm.layers > depth:
                raise ValueError(
                    f"arms.{name}.layers = {arm.layers}\n  accepted: up to {depth}, the layers of {folder.name}"
                )


def check_batches(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """Every trained arm can draw its batches, and its workers can share them."""
    from trainers.concept.batches import views_of

    for name, arm in study.arms.items():
        with of_arm(name):
            if arm.train:
                views_of(arm, corpus, study.resources.workers_per_run)


FAMILY = EncoderFamily(
    settings=Settings,
    data=ConceptData,
    defining=defining,
    fingerprint=fingerprint,
    former_fingerprint=fingerprint_of_all,
    load=load,
    trainer="trainers.concept.training",
    own_tasks=tasks,
    sizes=("n_id", "n_hh", "n_dev", "test_concepts", "stress_concepts"),
    checks=(check_layers, check_batches),
    space=SPACE,
    # Simple-SimCSE, results/bert-base-uncased.csv, column avg / 100: 50 seeds, mean .7511, sd .0084.
    spread=(0.0084, "public: SimCSE on BERT-base, 7 STS tasks, 50 seeds (Tsukagoshi 2022)"),
)
