"""The san family: aligned negatives on SimCSE, SNCSE, RankCSE and RLRD."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.san import corpus
from corpora.san.data import SanData
from corpora.san.set_report import notes_of
from corpora.store.cache import key_of
from evaluators.tasks.sts import SETS
from orchestration.families import opening, public_spread
from orchestration.families.contract import Family, RowsOf, Trainer
from orchestration.families.encoder_checks import check_depth, length_slips, micro_batch_slips, of_arm
from orchestration.families.encoders import EncoderFamily, shape_by
from search_spaces.san import SCALES, SPACE
from trainers.san.settings import PROMPTED, Settings, defining

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus
    from orchestration.study.study import Study

IN_TEMPLATE = f"""\
from pathlib import Path

from trainers.san.readers import Prompted  # texts are put into the host's template and read at its mask

vectors = Prompted.load(Path("FOLDER")).encode({opening.TEXTS})
"""


def fingerprint(data: SanData) -> str:
    """A fingerprint of the sentences, their negatives, and the weights of every teacher."""
    from trainers.encoders.backbones import backbone_fingerprint, resolve_backbone

    rows = corpus.fingerprint(data)
    if not data.teachers:
        return rows
    named = {name: teacher.rpartition("@") for name, teacher in data.teachers.items()}
    weights = {name: [backbone_fingerprint(resolve_backbone(at)), how] for name, (at, _, how) in named.items()}
    return key_of({"rows": rows, "teachers": weights})


def opened_by(folder: Path) -> str:
    """A prompted host's template is no module of sentence-transformers."""
    from trainers.san.readers import RECORD

    return IN_TEMPLATE if (folder / RECORD).is_file() else opening.opened_by(folder)


def load(data: SanData) -> SanCorpus:
    """The sentences with their negatives and teachers, which are built if missing."""
    return replace(corpus.load(data), teachers=data.teachers, fingerprint=fingerprint(data))


def told_of_corpus(settings: Settings, corpus: SanCorpus) -> dict[str, str]:
    """Notes for the report on the origin and quality of an arm's negatives; stand-ins are named as such."""
    notes = notes_of(settings.negatives, corpus) if settings.needs_set else {}
    if settings.needs_set or settings.host in PROMPTED or settings.column == "soft":
        notes["negations by"] = corpus.negator
    return notes


def check_arms(study: Study, backbones: Sequence[Path], corpus: SanCorpus) -> None:
    """Raise an error for a trained arm whose set, teachers or sentences do not suffice, whose workers cannot share
    a batch, or whose policies would never learn."""
    from trainers.san.batches import check_set, steps_of

    for name, arm in study.arms.items():
        if not arm.train:
            continue
        with of_arm(name):
            check_set(arm, corpus, study.resources.workers_per_run)
        if not arm.policies_learn:
            continue
        if study.resources.deepspeed.zero_stage > 2:
            raise ValueError(
                f"arms.{name}.rl_update = {arm.rl_update!r}"
                "\n  accepted: fixed, or a zero_stage up to 2: stage 3 would cut the policies into parts"
            )
        fewest, steps = arm.fewest_to_learn, steps_of(arm, corpus)
        if not fewest <= arm.rl_every <= steps:
            least = f"{fewest} and more, " if fewest > 1 else ""
            raise ValueError(
                f"arms.{name}.rl_every = {arm.rl_every}\n  accepted: {least}up to {steps}, the steps of this arm,"
                " or its policies never learn; or rl_update fixed"
            )


def check_enough_layers(study: Study, backbones: Sequence[Path]) -> None:
    """Raise ValueError for an arm that reads more layers than a backbone has."""
    check_depth(study, backbones, lambda arm: arm.layers or 0)


def check_backbones(study: Study, backbones: Sequence[Path], corpus: SanCorpus) -> None:
    """Raise an error for a backbone that lacks what arms need: a mask token with room beside it, layers that
    can be left out, dropout, packed attention."""
    from trainers.encoders.backbones import BackboneError
    from trainers.encoders.tokens import tokenizer_in
    from trainers.san.dropout import check_fused
    from trainers.san.readers import check_dropout, check_layers
    from trainers.san.templates import OTHER_VIEW, check_sentences, in_template

    for folder in backbones:
        for name, arm in study.arms.items():
            try:
                if arm.host in PROMPTED:
                    tokenizer = tokenizer_in(folder)
                    in_template(tokenizer, ["a"], OTHER_VIEW, max_length=arm.max_length)
                    if arm.train:
                        check_sentences(tokenizer, corpus.sentences)
                if arm.layers is not None:
                    check_layers(folder, arm.layers)
                check_dropout(folder, arm)
                if arm.train and arm.san_pass == "fused":
                    check_fused(folder)
            except (ValueError, BackboneError) as error:
                raise ValueError(f"arms.{name} on {folder.name}: {error}") from None


def check_search(study: Study) -> None:
    """Raise an error if a set that a search may choose is missing: of the four scales, or those that it lists."""
    if study.search is None:
        return
    wanted = study.search.dimensions
    chosen = wanted.get("negatives", ()) if isinstance(wanted, Mapping) else SCALES
    sets = chosen if isinstance(chosen, list) else SCALES if chosen else ()
    moved = any(study.arms[name].needs_set for name in study.search.arms)
    missing = [name for name in sets if name not in study.data.negatives]
    if moved and missing:
        raise ValueError(
            f"search.dimensions.negatives: {', '.join(missing)} of data.negatives"
            f"\n  accepted: a list of some of {', '.join(study.data.negatives)}; or other dimensions"
        )


def most_at_once(settings: Settings) -> int:
    """The most texts that pass the encoder together: those at the views' dropout, or all if a pass has both."""
    from trainers.san.batches import columns_of

    apart = settings.san_pass == "separate" and (settings.san != "off" or settings.p2_of == "second_view")
    return settings.batch_size * (len(columns_of(settings)) - apart)


def rows_of(corpus: SanCorpus) -> list[RowsOf]:
    return [RowsOf("sentences", len(corpus))]


def shape(settings: Settings) -> Hashable:
    """The key of arms that can train as one stack. ValueError for an arm with several dropout rates."""
    if settings.train and settings.san_pass == "fused":
        raise ValueError("train.san_pass = 'fused'\n  accepted: separate with resources.runs_per_stack above 1")
    return shape_by("epochs", "steps", "batch_size", "max_length")(settings)


def trainer() -> Trainer:
    from trainers.san import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=SanData,
    defining=defining,
    fingerprint=fingerprint,
    load=load,
    rows_of=rows_of,
    trainer=trainer,
    opened_by=opened_by,
    told_of_corpus=told_of_corpus,
    distributions={  # figure 4, and its mirror image
        f"cosine, {task}": {
            "alike in meaning, few words shared": f"{task}/hi_lo/mean",
            "unlike in meaning, many words shared": f"{task}/lo_hi/mean",
        }
        for task in ("suppression", *(f"suppression/{name}" for name in SETS))
    },
    checks=(check_arms, check_backbones),
    backbone_checks=(check_enough_layers,),
    first_checks=(check_search,),
    slips=lambda study: [*micro_batch_slips(most_at_once)(study), *length_slips(defining)(study)],
    space=SPACE,
    shape=shape,
    spread=public_spread.of_simcse(),
)
