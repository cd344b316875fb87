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
from orchestration.families.encoder_checks import check_depth, check_trained, micro_batch_slips
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
    """A trained mixture that stayed uniform, against an arm that mixes nothing, is no test of learning to mix.

    At the base rate a logit can move by about .08 in 8,000 steps: nothing found is then true by construction.
    """
    if len({side.settings.readout in MIXTURES for side in sides}) < 2:
        return ()
    said = []
    for side in sides:
        if side.settings.train and side.settings.readout in MIXTURES:
            shift = side.means.get("readout/shift")
            if shift is None:
                said.append(f"whether {side.name} moved its layer weights is unknown: `evaluate: readout` tells")
            elif shift <= MOVED:
                said.append(
                    f"untested: the layer weights of {side.name} stayed within {MOVED} of uniform ({shift:.3f})"
                )
    return tuple(said)


def check_views_given(study: Study) -> None:
    """Every trained arm has a view with weight among those of `data:`, and its workers can share a batch."""
    from trainers.concept.batches import check_views

    workers = study.resources.workers_per_run
    check_trained(study, lambda arm: check_views(arm, study.data.views, workers))


def check_layers(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """A readout mixes no more layers than each backbone has."""
    check_depth(study, backbones, lambda arm: arm.layers if arm.readout in MIXTURES else 0)


def check_layer_decay(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """Rates fall from layer to layer only where each layer has weights of its own."""
    shared = [folder.name for folder in backbones if not layers_learn_apart(folder)]
    for name, arm in study.arms.items():
        if shared and arm.train and arm.layer_decay < 1:
            raise ValueError(
                f"arms.{name}: train.layer_decay = {arm.layer_decay}\n"
                f"  accepted: 1.0 with {shared[0]}, whose layers all have the same weights"
            )


def check_batches(study: Study, backbones: Sequence[Path], corpus: ConceptCorpus) -> None:
    """Every trained arm can draw its batches."""
    from trainers.concept.batches import views_of

    check_trained(study, lambda arm: views_of(arm, corpus, study.resources.workers_per_run))


def slips(study: Study) -> list[str]:
    return [*micro_batch_slips(partial(most_at_once, study.data))(study), *idle_weights(study)]


def most_at_once(data: ConceptData, settings: Settings) -> int:
    """Texts that pass the encoder at once: pairs of all views with weight, or negatives, whichever are more."""
    views = sum(weight > 0 for view, weight in settings.weights.items() if view in data.views)
    each = min(settings.negatives_per_definition or len(RULES), len(RULES)) if settings.hard_negatives else 0
    return settings.batch_size * max(2 * views, each)


def idle_weights(study: Study) -> list[str]:
    """The slips of weights, set or searched, of pairs that `data:` does not give: arms train alike by any."""
    data, search, told = study.data, study.search, dict[str, list[str]]()
    moved = () if search is None else search.dimensions or [one.name for one in SPACE]
    for name, arm in study.arms.items():
        for view, weight in arm.weights.items() if arm.train else ():
            field = f"{view}_weight"
            if view in data.views:
                continue
            if weight != Settings().weights.get(view, weight):
                told.setdefault(f"{field} = {weight:g}", []).append(name)
            if search is not None and name in search.arms and field in moved:
                told.setdefault(f"{field}, which the search moves,", []).append(name)
    return [
        f"{listed(arms)}: {what} weighs nothing: data.lexicons = [{', '.join(data.lexicons)}] has no such pairs; "
        "yet such runs have other ids than without it"
        for what, arms in told.items()
    ]


def rows_of(corpus: ConceptCorpus) -> list[RowsOf]:
    """Pairs of each kind that train, and terms of each split that is measured on."""
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
    checks=(check_layers, check_layer_decay, check_batches),
    first_checks=(check_views_given,),
    slips=slips,
    space=SPACE,
    spread=public_spread.of_simcse(),
    shape=shape_by("steps", "batch_size", "max_length"),
)
