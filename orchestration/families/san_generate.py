"""`semray san-generate`: its flags, and the generation of a set of aligned negatives."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from corpora.san.data import SanData
from corpora.san.recipe import SetRecipe
from orchestration.families.flags import add_fields, add_precision, made
from orchestration.study.writable import new_folder

if TYPE_CHECKING:
    from orchestration.families.contract import Write
    from orchestration.families.san_set import Order

SUMMARY = "write syntactically aligned negatives of a corpus, for studies of the san family"
REPORT = "report.json"
# Help of the flags that are fields of recipe and data, which also give their types, choices and defaults.
RECIPE = {
    "law": "who is masked",
    "scale": "a token is masked with probability score / scale",
    "importance": "a YAML file of scores by part of speech (default: the paper's)",
    "iterations": "cycles of mask and predict",
    "decode": "the best filling, or one of the k best by noise",
    "k": "for topk",
    "tagging": "by vocabulary entry, or by spaCy on the sentence",
    "negator": "who writes the soft negatives",
    "seed": "of masks and noise",
    "max_tokens": "tokens of a sentence that may change",
}
DATA = {  # sentences and lexicon
    "sentences": "wordnet, semcor, wiki1m, wiki1m_sample, nli, snli_train, …, or a file",
    "least_words": "leave out shorter sentences",
    "most_words": "leave out longer sentences",
    "sample": "so many sentences, chosen by their text",
    "lexicon": "what tags the vocabulary: auto, spacy, or a file of lines of word, tab and part of speech",
    "path": "a folder to look in first for wiki1m, nli and snli",
    "wordnet": "where WordNet is kept",
    "semcor": "where SemCor is kept",
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out", required=True, metavar="FOLDER", help="where the set is kept; goes on where it was left"
    )
    command.add_argument(
        "--generator",
        default="cloze",
        metavar="NAME",
        help="who fills the masks: cloze, or a masked language model such as bert-base-uncased (default: cloze)",
    )
    add_fields(command, SanData, DATA)
    add_fields(command, SetRecipe, RECIPE)
    add_precision(command, "of a masked language model; part of the set's name")


class Generation:
    """See `contract.OwnWork`."""

    unit = "sentences"

    def __init__(self, order: Order) -> None:
        from orchestration.families.san_set import begin

        self.order = order
        self.pending: Mapping[int, int] = begin(order)

    @property
    def written(self) -> str:
        from corpora.san import shards

        every = shards.shards_of(shards.read_manifest(self.order.folder))
        return f"{every - len(shards.pending(self.order.folder))} of {every} shards"

    def writer(self) -> Callable[[], Write]:
        from orchestration.families.san_set import writer_of

        return writer_of(self.order)

    def outcome(self) -> tuple[dict[str, Any], str]:
        """The report on the set, which is also written into its folder, and its text for the terminal."""
        from corpora.san import shards
        from corpora.san.set_report import report, shown

        folder, manifest = self.order.folder, shards.read_manifest(self.order.folder)
        found = report(shards.read(folder))
        content = {"set": shards.set_id(manifest), "generator": manifest["generator"], **asdict(found)}
        (folder / REPORT).write_text(json.dumps(content, indent=1, ensure_ascii=False))
        return content, f"{folder}   set {content['set'][:12]}   {content['generator']}\n{shown(found)}"


def work_of(options: Namespace) -> Generation:
    """The generation that the flags describe, begun. Raises StudyError naming a flag with a value not accepted."""
    return Generation(_order(options))


def _order(options: Namespace) -> Order:
    from orchestration.families.san_set import Order
    from trainers.engine.precision import best_precision

    given = vars(options)
    recipe = made(SetRecipe, given)
    data = made(SanData, given, negatives={"san": recipe})
    folder = new_folder(options.out).resolve()
    device = "cuda" if options.gpus else "cpu"
    precision = options.precision or best_precision(device)
    return Order(
        data=data, recipe=recipe, generator=options.generator, folder=folder, device=device, precision=precision
    )
