"""The concept family: one place for every expression of a concept, with hard negatives for what is nearly one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.concept.corpus import fingerprint, fingerprint_of_all, load
from corpora.concept.data import ConceptData
from corpora.concept.records import RULES
from evaluators.tasks.concept import LAYERS, tasks
from orchestration.families import public_spread
from orchestration.families.contract import Against, ArmSeen, ByLayer, Family, RowsOf, Trainer
from orchestration.families.encoder_checks import check_depth, check_trained, length_slips, micro_batch_slips
from orchestration.families.encoders import EncoderFamily, shape_by
from orchestration.study.names import listed
from search_spaces.concept import SPACE
from trainers.concept.settings import Settings, defining, in_bf16
from trainers.encoders.backbones import layers_learn_apart
from trainers.encoders.readout_names import MIXTURES

if TYPE_CHECKING:
    from corpora.concept.records import ConceptCorpus
    from orchestration.study.study import Study


MOVED = 0.03  # how far a mixture's weights must be from uniform before they say anything about mixing


def caveats(sides: Sequence[ArmSeen], data: ConceptData, figures: Sequence[str]) -> tuple[str, ...]:
    """Warn if a trained mixture stayed uniform and is compared with an arm without one: it did not learn to mix.

    At the base rate a logit moves by about .08 at most in 8,000 steps, so that finding no difference is no
    surprise.
    """
    if len({side.settings.readout in MIXTURES for side in sides}) < 2:
        return ()
    remarks = []
    for side in sides:
        if side.settings.train and side.settings.readout in MIXTURES:
            shift = side.means.get("readout/shift")
            if shift is None:
                remarks.append(
                    f"whether {side.name} moved its layer weights is unknown: `evaluate: readout` tells"
                )
            elif shift <= MOVED:
                remarks.append(
                    f"untested: the layer weights of {side.name} stayed within {MOVED} of uniform ({shift:.3f})"
                )
    return tuple(remarks)


def check_views_given(study: Study) -> None:
    """Raise ValueError for a trained arm without a weighted view of `data:`, or with batches that workers cannot
    share."""
    from trainers.concept.batches import check_views

    workers = study.resources.workers_per_run
    check_trained(study, lambda arm: check_views(arm, study.data.views, workers))


def check_layers(study: Study, backbones: Sequence[Path]) -> None:
    """Raise ValueError for a readout that mixes more layers than a backbone has."""
    check_depth(study, backbones, lambda arm: arm.layers if arm.readout in MIXTURES else 0)


def check_layer_decay(study: Study, backbones: Sequence[Path]) -> None:
    """Raise ValueError for layer_decay < 1 with a backbone whose layers share their weights."""
    shared = [folder.name for folder in backbones if not layers_learn_apart(folder)]
    for name, arm in study.arms.items():
        if shared and arm.train and arm.layer_decay < 1:
            raise ValueError(
                f"arms.{name}: train.layer_decay = {arm.layer_decay}\n"
                f"  accepted: 1.0 with {shared[0]}, whose layers all have the same weights"
            )


def check_batches(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """Raise ValueError for a trained arm whose batches the corpus cannot fill."""
    from trainers.concept.batches import views_of

    check_trained(study, lambda arm: views_of(arm, corpus, study.resources.workers_per_run))


def slips(study: Study) -> list[str]:
    undivided = micro_batch_slips(partial(most_at_once, study.data))
    return [*undivided(study), *idle_weights(study), *length_slips(defining)(study)]


def most_at_once(data: ConceptData, settings: Settings) -> int:
    """The most texts that pass the encoder together: pairs of all weighted views, or negatives if more."""
    views = sum(weight > 0 for view, weight in settings.weights.items() if view in data.views)
    each = min(settings.negatives_per_definition or len(RULES), len(RULES)) if settings.hard_negatives else 0
    return settings.batch_size * max(2 * views, each)


def idle_weights(study: Study) -> list[str]:
    """Warnings of weights, set or searched, of views that `data:` does not have: they change nothing."""
    data, search, idle = study.data, study.search, dict[str, list[str]]()
    moved = () if search is None else search.dimensions or [dimension.name for dimension in SPACE]
    for name, arm in study.arms.items():
        for view, weight in arm.weights.items() if arm.train else ():
            field = f"{view}_weight"
            if view in data.views:
                continue
            if weight != Settings().weights.get(view, weight):
                idle.setdefault(f"{field} = {weight:g}", []).append(name)
            if search is not None and name in search.arms and field in moved:
                idle.setdefault(f"{field}, which the search moves,", []).append(name)
    return [
        f"{listed(arms)}: {what} weighs nothing: data.lexicons = [{', '.join(data.lexicons)}] has no such pairs; "
        "yet such runs have other ids than without it"
        for what, arms in idle.items()
    ]


def rows_of(corpus: ConceptCorpus) -> list[RowsOf]:
    """The number of training pairs of each kind, and of held-out terms of each split."""
    held = {f"terms ({name})": len(part.terms) for name, part in corpus.splits.items()}
    kinds = {"synonyms": corpus.syn, "definitions of two sources": corpus.d2d, "comments and labels": corpus.c2l}
    others = [RowsOf(name, len(pairs)) for name, pairs in kinds.items() if pairs is not None]
    return [RowsOf("terms and definitions", len(corpus.t2d), held), *others]


def trainer() -> Trainer:
    from trainers.concept import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=ConceptData,
    defining=defining,
    in_bf16=in_bf16,
    fingerprint=fingerprint,
    former_fingerprint=fingerprint_of_all,
    load=load,
    rows_of=rows_of,
    trainer=trainer,
    own_tasks=tasks,
    reads=lambda settings: ("texts", LAYERS),
    caveats=caveats,
    arm_plots=(
        ByLayer("reciprocal rank", "layers/{}/mrr"),  # figure 3
        ByLayer("anisotropy", "layers/{}/anisotropy"),
        Against("readout/divergence", "t2d/recall@10"),  # theorem D.7: what a readout can change
        Against("geometry/anisotropy", "t2d/recall@10"),  # P1
        Against("pair_auc", "t2d/recall@10"),  # P3: calibration against ranking
    ),
    sizes=("n_id", "n_hh", "n_dev", "test_concepts", "stress_concepts"),
    checks=(check_batches,),
    backbone_checks=(check_layers, check_layer_decay),
    first_checks=(check_views_given,),
    slips=slips,
    space=SPACE,
    spread=public_spread.of_simcse(),
    shape=shape_by("steps", "batch_size", "max_length"),
)
