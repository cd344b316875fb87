"""The family as semray finds it: its settings, its data, its training and its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from semray.extending import EncoderFamily, Family, Trainer, shape_by
from semray_partners.corpus import Corpus, fingerprint, load
from semray_partners.settings import Data, Settings, defining
from semray_partners.tasks import of_corpus

if TYPE_CHECKING:
    from orchestration.study.study import Study


def check_batches(study: Study, backbones: Sequence[Path], corpus: Corpus) -> None:
    """What only a look at the corpus finds; before anything is trained. ValueError says what would be accepted."""
    if study.resources.workers_per_run > 1:
        raise ValueError("resources.workers_per_run\n  accepted: 1: a batch is not shared between workers here")
    for name, arm in study.arms.items():
        if arm.train and arm.batch_size > len(corpus.train):
            raise ValueError(
                f"arms.{name}.batch_size = {arm.batch_size}\n"
                f"  accepted: up to {len(corpus.train)}, the pairs there are"
            )


def trainer() -> Trainer:
    from semray_partners import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=Data,
    defining=defining,
    fingerprint=fingerprint,
    load=load,
    trainer=trainer,
    own_tasks=of_corpus,
    shape=shape_by("steps", "batch_size", "max_length"),
    sizes=("test",),
    checks=(check_batches,),
)
