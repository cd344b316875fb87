"""`semray san-generate`: aligned negatives of a corpus, in shards, by as many workers as there is room for."""

from __future__ import annotations

import argparse
import json
import re
import sys
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from trainers.engine.world import Precision

GENERATES = "write syntactically aligned negatives of a corpus, for studies of the san family"
REPORT = "report.json"
# Flags that have the default of the recipe's or the data's own field: name, type or choices, help.
RECIPE = (
    ("law", ("importance", "uniform", "content_only"), "who is masked (default: importance)"),
    ("scale", float, "a token is masked with probability score / scale (default: 20)"),
    ("importance", str, "a YAML file of scores by part of speech (default: the paper's)"),
    ("iterations", int, "cycles of mask and predict (default: 4)"),
    ("decode", ("argmax", "topk"), "the best filling, or one of the k best by noise (default: argmax)"),
    ("k", int, "for topk (default: 5)"),
    ("tagging", ("static", "dynamic"), "by vocabulary entry, or by spaCy on the sentence (default: static)"),
    ("negator", ("rule", "parse"), "who writes the soft negatives (default: rule)"),
    ("seed", int, "of masks and noise (default: 0)"),
    ("max-tokens", int, "tokens of a sentence that may change (default: 128)"),
)
DATA = (
    ("sentences", str, "wordnet, semcor, wiki1m, wiki1m_sample, nli, snli_train, …, or a file (default: wordnet)"),
    ("least-words", int, "leave out shorter sentences"),
    ("most-words", int, "leave out longer sentences"),
    ("sample", int, "so many sentences, chosen by their text"),
    ("lexicon", ("auto", "spacy"), "what tags the vocabulary (default: auto)"),
    ("path", str, "a folder to look in first for wiki1m, nli and snli"),
    ("wordnet", str, "where WordNet is kept"),
    ("semcor", str, "where SemCor is kept"),
)


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
    for name, kind, told in (*DATA, *RECIPE):
        accepted: dict[str, Any] = {"choices": kind} if isinstance(kind, tuple) else {"type": kind}
        command.add_argument(f"--{name}", default=argparse.SUPPRESS, help=told, **accepted)
    command.add_argument("--workers", type=int, default=None, help="at a time (default: as many as fit)")
    command.add_argument("--gpus", type=float, default=0.0, help="of each worker (default: 0)")
    command.add_argument(
        "--precision",
        choices=("fp32", "bf16"),
        default=None,
        help="of a masked language model; part of the set's name (default: bf16 on a GPU, else fp32)",
    )
    command.add_argument("--json", action="store_true", help="print JSON for programs")


def san_generate(options: Namespace) -> int:
    """Write what is pending, then say what the set is like."""
    from corpora.san import shards
    from corpora.san.set_report import report, shown
    from corpora.store.errors import CorpusError
    from orchestration.commands.terminal import DONE
    from orchestration.families.san_generation import begin, writer_of
    from orchestration.lanes.cluster import RunShare
    from orchestration.lanes.shard_pool import write_shards

    try:
        order = _order(options)
        pending = begin(order)
        every = shards.shards_of(shards.read_manifest(order.folder))

        def told(shard: int) -> None:
            left = len(shards.pending(order.folder))
            print(f"{every - left} of {every} shards", file=sys.stderr)

        share = RunShare(cpus=1, gpus=options.gpus)
        write_shards(pending, writer_of(order), share=share, workers=options.workers, on_written=told)
        manifest = shards.read_manifest(order.folder)
        made = report(shards.read(order.folder))
    except CorpusError as error:
        raise StudyError(str(error)) from error
    content = {"set": shards.set_id(manifest), "generator": manifest["generator"], **made.as_json()}
    (order.folder / REPORT).write_text(json.dumps(content, indent=1, ensure_ascii=False))
    if options.json:
        print(json.dumps(content, indent=1))
    else:
        print(f"{order.folder}   set {content['set'][:12]}   {content['generator']}\n{shown(made)}")
    return DONE


def _order(options: Namespace) -> Any:
    """What the flags ask for. StudyError names the flag whose value is not accepted."""
    from corpora.san.data import SanData
    from corpora.san.mask_predict import SetRecipe
    from orchestration.families.san_generation import Order

    if options.workers is not None and options.workers < 1:
        raise StudyError(f"--workers {options.workers}\n  accepted: a whole number of at least 1")
    if not 0 <= options.gpus < float("inf"):
        raise StudyError(f"--gpus {options.gpus}\n  accepted: a number from 0")
    given = vars(options)
    try:
        recipe = SetRecipe(**{one.name: given[one.name] for one in fields(SetRecipe) if one.name in given})
        data = SanData(
            **{one.name: given[one.name] for one in fields(SanData) if one.name in given},
            negatives={"san": recipe},
        )
    except ValueError as error:
        place, _, accepted = str(error).partition("accepted: ")
        field = re.split(r"[.:]| =", place.removeprefix("data.").removeprefix("negatives."))[0]
        flag = f"--{field.replace('_', '-')}"
        raise StudyError(f"{flag} {given.get(field, '')}\n  accepted: {accepted}") from error
    folder = Path(options.out).expanduser().resolve()
    device = "cuda" if options.gpus else "cpu"
    precision: Precision = options.precision or ("bf16" if options.gpus else "fp32")
    return Order(
        data=data, recipe=recipe, generator=options.generator, folder=folder, device=device, precision=precision
    )
