"""The cale family: concept-aligned embeddings of words in their sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.cale.corpus import fingerprint, former_fingerprint, load
from corpora.cale.data import SIZES, CaleData
from evaluators.metrics.concept_differentiation import DISTANCES_BY_CATEGORY
from evaluators.tasks.cale import tasks
from evaluators.tasks.words_in_context import OCCURRENCES
from orchestration.families.contract import Family, RowsOf, Trainer
from orchestration.families.encoder_checks import (
    check_depth,
    check_trained,
    length_slips,
    micro_batch_slips,
    of_arm,
)
from orchestration.families.encoders import EncoderFamily, shape_by
from search_spaces.cale import SPACE
from trainers.cale.settings import Settings, defining

if TYPE_CHECKING:
    from corpora.cale.records import CaleCorpus
    from orchestration.study.study import Study

# Untrained arms that a claim of a gain over an untrained encoder needs in the study: readout -> the arm's text
REQUIRED = {"lemma": "{readout: lemma}", "target": "{readout: target, layers: [...]}"}


def reads(settings: Settings) -> tuple[str, ...]:
    """Every arm reads words in their sentences; with readout mean it also reads plain texts."""
    return (OCCURRENCES, "texts") if settings.readout == "mean" else (OCCURRENCES,)


def check_claims(study: Study, backbones: Sequence[Path], corpus: CaleCorpus) -> None:
    """Raise ValueError for a claim on the misprinted loss, or on a gain over an untrained encoder if the study
    lacks a REQUIRED arm.

    An untrained encoder does not understand tags, and training on few pairs mostly teaches to recognise the same
    word. Such a gain must be read beside the lemma alone (1L1C) and the untrained states of the target.
    """
    untrained = {arm.readout for arm in study.arms.values() if not arm.train}
    missing = [words for readout, words in REQUIRED.items() if readout not in untrained]
    for comparison in study.parts:
        arms_of_roles = [(role, name) for role, side in comparison.sides.items() for name in side.arms]
        for role, name in arms_of_roles:
            if study.arms[name].train and study.arms[name].loss == "printed":
                raise ValueError(
                    f"compare: {comparison.claim}: {role} = {name} has loss printed"
                    "\n  accepted: arms with loss contrastive_distance; a misprint is shown, not claimed"
                )
        arms = [study.arms[name] for _, name in arms_of_roles]
        gain = any(arm.train for arm in arms) and any(not arm.train and arm.readout == "mean" for arm in arms)
        if gain and missing:
            raise ValueError(
                f"compare: {comparison.claim}: {comparison.treatment} - {comparison.control} alone says little"
                f"\n  accepted: beside them an arm with train: false and {' and one with '.join(missing)}"
            )


def check_target_layers(study: Study, backbones: Sequence[Path]) -> None:
    """Raise ValueError for a backbone without the layers that an arm reads."""
    check_depth(study, backbones, lambda arm: max(arm.layers, default=0))


def check_pairs(study: Study, backbones: Sequence[Path], corpus: CaleCorpus) -> None:
    """Raise ValueError for a trained arm with less than a batch of pairs, or one that workers cannot share."""
    from trainers.cale.batches import training_rows

    check_trained(study, lambda arm: training_rows(arm, corpus.pairs["train"], study.resources.workers_per_run))


def check_lengths(study: Study, backbones: Sequence[Path], corpus: CaleCorpus) -> None:
    """Raise ValueError for a trained arm whose max_length is too short for a training word with its tags."""
    from trainers.encoders.occurrence_encoder import check_words

    train = corpus.pairs["train"]
    places = np.union1d(train.anchor, train.partner)
    words = sorted({occurrence.target for occurrence in corpus.occurrences.take(places)})
    arms = {(arm.markers, arm.max_length): name for name, arm in reversed([*study.arms.items()]) if arm.train}
    for folder, ((markers, max_length), name) in product(backbones, arms.items()):
        with of_arm(name):
            check_words(folder, words, markers=markers, max_length=max_length)


def slips(study: Study) -> list[str]:
    """Warnings of numbers that divide no step, and of lengths that nothing reads."""
    return [*micro_batch_slips(lambda settings: 2 * settings.batch_size)(study), *length_slips(defining)(study)]


def rows_of(corpus: CaleCorpus) -> list[RowsOf]:
    held = {"to measure on": len(corpus.pairs["test"]), "to choose by": len(corpus.pairs["val"])}
    return [RowsOf("pairs of occurrences", len(corpus.pairs["train"]), held)]


def trainer() -> Trainer:
    from trainers.cale import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=CaleData,
    defining=defining,
    fingerprint=fingerprint,
    former_fingerprint=former_fingerprint,
    load=load,
    rows_of=rows_of,
    trainer=trainer,
    own_tasks=tasks,
    reads=reads,
    sizes=(*SIZES, "held_sentences"),
    checks=(check_claims, check_pairs, check_lengths),
    backbone_checks=(check_target_layers,),
    slips=slips,
    space=SPACE,
    shape=shape_by("steps", "batch_size", "max_length"),
    distributions={"cosine distance": DISTANCES_BY_CATEGORY},
)
