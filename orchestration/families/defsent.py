"""The defsent family: sentence embeddings from definitions, with Sentence-BERT beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.defsent.corpus import fingerprint, load
from corpora.defsent.data import SIZES, DefsentData
from evaluators.tasks.defsent import DEFINITIONS, tasks
from orchestration.families.contract import Family, RowsOf, Trainer
from orchestration.families.encoder_checks import check_trained, length_slips, of_arm
from orchestration.families.encoders import EncoderFamily, shape_by
from search_spaces.defsent import SPACE
from trainers.defsent.settings import FITTED, Settings, defining
from trainers.engine.limits import check_shared

if TYPE_CHECKING:
    from corpora.defsent.records import DefsentCorpus
    from orchestration.study.study import Study
    from trainers.defsent.encoder import WordEncoder

HEAD = FITTED | {"head_source"}  # the settings that determine the head


def reads(settings: Settings) -> tuple[str, ...]:
    """Every arm reads sentences, as vectors before the head, and definitions, through the head."""
    return (DEFINITIONS, "texts")


def fits(settings: Settings) -> bool:
    """True if the arm needs the training corpus; an untrained arm does for a head fitted on its definitions."""
    return settings.train or settings.head_source == "mlm_fit"


def told(model: WordEncoder) -> dict[str, str]:
    """The origin of the head and of the sentence pairs, which every table shows."""
    about = model.about
    head = str(about["head_source"])
    if "mlm accuracy" in about:
        head += (
            f", fitted on {about['mlm texts']} texts: {about['mlm accuracy']:.3f} of held-out masked words right,"
            f" {about['mlm most_frequent']:.3f} by the most frequent word"
        )
    return {"head_source": head} | {name: str(about[name]) for name in ("nli_source",) if name in about}


def check_heads(study: Study, backbones: Sequence[Path], corpus: DefsentCorpus) -> None:
    """Raise ValueError for a backbone without the head that an arm uses, or the mask token to fit one."""
    from transformers import AutoConfig

    from trainers.defsent.heads import has_head, layout_of, missing_head
    from trainers.defsent.mlm_fit import check_maskable

    for name, arm in study.arms.items():
        for folder in backbones:
            with of_arm(name):
                if arm.head_source == "mlm_fit":
                    check_maskable(folder)
                if arm.head_source == "pretrained":
                    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
                    if not has_head(folder, layout_of(config, folder)):
                        raise ValueError(missing_head(folder))


def check_words(study: Study, backbones: Sequence[Path], corpus: DefsentCorpus) -> None:
    """Raise ValueError for a backbone whose vocabulary has no word of the training rows, if an arm is fitted."""
    from trainers.defsent.vocabulary import with_leading_space, words_known
    from trainers.encoders.tokens import tokenizer_in

    for folder in backbones if any(map(fits, study.arms.values())) else ():
        words_known(with_leading_space(tokenizer_in(folder)), corpus, folder.name)


def check_claims(study: Study, backbones: Sequence[Path], corpus: DefsentCorpus) -> None:
    """Raise ValueError for a claim on word prediction whose arms differ in the head and in other settings."""

    def settings_but_head(arm: Settings) -> dict[str, Any]:
        return {name: value for name, value in defining(arm).items() if name not in HEAD}

    for comparison in study.parts:
        sides = [study.arms[comparison.sides[role].arm] for role in ("treatment", "control")]
        heads = [arm.head_source for arm in sides]
        figures = study.figures_of(comparison.metric)
        predicts = any(figure.startswith(("d2w/", "dev/d2w/")) for figure in figures)
        if predicts and heads[0] != heads[1] and settings_but_head(sides[0]) != settings_but_head(sides[1]):
            raise ValueError(
                f"compare: {comparison.claim}: {comparison.treatment} has head_source {heads[0]},"
                f" {comparison.control} {heads[1]}\n"
                "  accepted: one head_source on both sides, or arms that differ in nothing else"
            )


def check_batches(study: Study, backbones: Sequence[Path], corpus: DefsentCorpus) -> None:
    """Raise ValueError for a batch that workers cannot share, and for Sentence-BERT without sentence pairs."""
    workers = study.resources.workers_per_run
    check_trained(study, lambda arm: check_shared(arm.batch_size, workers))
    for name, arm in study.arms.items():
        if arm.train and arm.objective == "inference" and corpus.inferences is None:
            raise ValueError(
                f"arms.{name}.objective = 'inference', and data.nli = 'none'\n  accepted: a data.nli with pairs:"
                " snli_mnli, snli_devtest or sick_e"
            )


def rows_of(corpus: DefsentCorpus) -> list[RowsOf]:
    held = {f"of {split}": len(rows) for split, rows in corpus.rows.items() if split != "train"}
    return [RowsOf("words and definitions", len(corpus.rows["train"]), held)]


def trainer() -> Trainer:
    from trainers.defsent import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=DefsentData,
    defining=defining,
    fingerprint=fingerprint,
    load=load,
    rows_of=rows_of,
    trainer=trainer,
    own_tasks=tasks,
    reads=reads,
    fits=fits,
    told=told,
    sizes=SIZES,
    checks=(check_heads, check_claims, check_batches, check_words),
    slips=length_slips(defining),
    space=SPACE,
    shape=shape_by("objective", "epochs", "steps", "batch_size", "max_length"),
    # DefSent, table 5: sd of ten seeds for BERT-base, cls.
    spread=(0.0020, "DefSent, table 5: MRR of BERT-base cls, 10 seeds"),
)
