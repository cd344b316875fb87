"""Sentence pairs with a similarity between 0 and 1, of STS-B, MRPC, QQP, PAWS and more, capped and hashed.

A task's rows come in file order. `first` caps keep the order's beginning: on STS-B, whose files are grouped by
genre, the first 2,000 training rows are captions only. `hash` caps keep a mixed sample, the same on every machine.
Never compare figures across caps: the frozen baseline alone changes from .87 to .90 on STS-B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge

from corpora.benchmarks.pairs import Pairs, letters_of
from corpora.difficulty.raw_splits import raw_splits
from corpora.difficulty.rows import PairTask, pair_sha256
from corpora.difficulty.similarity_sets import SETS, YEARS
from corpora.store.cache import digest_of, key_of
from corpora.store.errors import CorpusError
from corpora.store.fields import Length, check_fields, words
from corpora.store.places import named_path

PairSet = Literal["stsb", "mrpc", "qqp", "paws", "paws_offline", "sickr", "sts12", "sts13", "sts14"]
GRADED = {name: name in ("stsb", *SETS) for name in get_args(PairSet)}
STANDIN = "token_match_standin"
HELD_OUT = 0.30  # of the STS-B training rows go to the offline judge when it is used
SELECTION = 1 / 3  # of the training pairs decide a search
STANDIN_SAW = ("stsb",)  # whose labels it learned: rows of their own, but of the same sources and annotators
SHARED = {
    "stsb": ("mrpc", "sickr", *YEARS),  # it was drawn from these
    "sts12": ("mrpc", "sickr", "sts13", "sts14"),
    "sts13": ("sts14",),
    "paws": ("paws_offline",),
}  # sets that hold pairs of each other, each two once
ON_STSB = ("stsb", *YEARS)  # tasks that train on STS-B's training rows
ON_TEST = ("paws_offline", *YEARS)  # tasks whose evaluation rows are published as test; runs name them validation
FinalTest = Literal["stsb", "mrpc", "sickr"]  # tasks whose own labelled test split may decide a study
Cap = Annotated[int, Ge(2)]


@dataclass(frozen=True, kw_only=True)
class PairData:
    """The `data:` block of a difficulty study. CorpusError names a field whose value is not accepted.

    path: a folder to look in first, one of the published text formats or the hub's.
    final_eval: tasks that are evaluated on their test split instead of validation.
    judge: who defines the hardness target of the judge-gated arms: `none`, `token_match_standin` (an offline
    stand-in, not a cross-encoder), `scores_file`, or the name or folder of a cross-encoder.
    judge_saw: data sets whose labels the judge was trained on, in whatever case and with whatever signs; a claim
    that rests on the judge carries a warning on such a task, and on one that shares pairs with it.
    scores_file: TSV of `a, b, score` or `pair_sha256, score`.
    prompt: text put before every sentence when it is encoded.
    max_length: tokens kept of a sentence; absent, the encoder's own limit.
    """

    tasks: tuple[PairSet, ...] = ("stsb", "mrpc", "paws_offline")  # ours: section 4's, without the hub
    cap_mode: Literal["first", "hash"] = "first"  # section 5.4: the first pairs of the split
    train_cap: Cap = 4000  # section 4: of the study of many tasks
    eval_cap: Cap = 1500  # section 4: of the study of many tasks
    path: str | None = None  # a place, no choice
    final_eval: tuple[FinalTest, ...] = ()  # section 4: no test split is used
    judge: str = "none"  # the study says which
    judge_saw: tuple[str, ...] = ()  # the study says which
    judge_symmetric: bool = False  # ours: pairs as they are given
    scores_file: str | None = None  # none: of judge scores_file alone
    prompt: str | None = None  # ours: the paper gives none
    max_length: Length | None = None  # ours: the encoder's own

    def __post_init__(self) -> None:
        check_fields(self, "data", CorpusError)
        if not self.tasks or len(set(self.tasks)) < len(self.tasks):
            raise CorpusError(f"data.tasks = {list(self.tasks)!r}\n  accepted: {words(PairSet)}, each once")
        if not set(self.final_eval) <= set(self.tasks):
            raise CorpusError(
                f"data.final_eval = {list(self.final_eval)!r}\n  accepted: of the tasks, {', '.join(self.tasks)}"
            )
        if self.judge_saw and self.judge in ("none", STANDIN):
            asked = f"data.judge_saw = {list(self.judge_saw)!r} with data.judge = {self.judge!r}"
            raise CorpusError(f"{asked}\n  accepted: [] with none, and with the stand-in, of which it is known")
        if self.judge_symmetric and self.judge in ("none", "scores_file", STANDIN):
            asked = f"data.judge_symmetric = true with data.judge = {self.judge!r}"
            raise CorpusError(
                f"{asked}\n  accepted: false without a cross-encoder, which alone reads pairs in both orders"
            )
        if (self.judge == "scores_file") != (self.scores_file is not None):
            raise CorpusError(
                f"data.scores_file = {self.scores_file!r}\n  accepted: a file with judge: scores_file, and null"
                " without"
            )


def load_task(name: str, data: PairData) -> PairTask:
    """One task of the data block, read and capped. Nothing trains on the offline judge's rows of STS-B.

    Raises CorpusError for missing files.
    """
    on_test = name in data.final_eval
    train, evaluation, source = raw_splits(name, test=on_test, path=data.path)
    if name in ON_STSB and data.judge == STANDIN:
        own = held_out(train)
        train = train.take(_others(train, own))
        source += f"; {len(own)} training rows belong to the judge"
    return PairTask(
        name,
        GRADED[name],
        capped(train, data.train_cap, data.cap_mode),
        capped(evaluation, data.eval_cap, data.cap_mode),
        "test" if on_test else "validation",
        source,
    )


def seen_by_judge(data: PairData) -> dict[str, str]:
    """Task -> the set with its pairs or labels from which the judge of a study learned."""
    saw = STANDIN_SAW if data.judge == STANDIN else tuple(filter(None, map(set_named, data.judge_saw)))
    seen = {task: learned for learned in saw for task in sharing(learned)} | {learned: learned for learned in saw}
    if data.judge == STANDIN:  # `standin_pairs` leaves MRPC's out
        del seen["mrpc"]
    return seen


def set_named(written: str) -> str | None:
    """The name of a set that a person may write as STS-B, sts_b or stsb; None for an unknown set."""
    return next((name for name in get_args(PairSet) if letters_of(name) == letters_of(written)), None)


def sharing(name: str) -> tuple[str, ...]:
    """The sets that share pairs with this one."""
    return (*SHARED.get(name, ()), *(other for other, names in SHARED.items() if name in names))


def measured_on(task: PairTask) -> str:
    """The split as which its evaluation rows were published."""
    return "test" if task.name in ON_TEST else task.evaluated_on


def for_selection(task: PairTask) -> PairTask:
    """The task for choosing settings: a third of its TRAINING pairs, by a hash of their text, is evaluated on.

    The rest is for training; the evaluation split is not used. The name gets the prefix `dev/`. Sentences may be
    in both parts. CorpusError if too few rows are left to rank, or none to train on.
    """
    chosen = [row for row, name in enumerate(_hashes(task.train)) if int(name[8:16], 16) / 2**32 < SELECTION]
    kept = _others(task.train, chosen)
    if len(chosen) < 2 or not kept:
        raise CorpusError(
            f"{task.name}: of {len(task.train)} training rows a search has {len(chosen)} to choose by, {len(kept)}"
            " to train on\n  accepted: at least 2 and 1: a larger data.train_cap, or more rows"
        )
    evaluation = task.train.take(chosen)
    return PairTask(f"dev/{task.name}", task.graded, task.train.take(kept), evaluation, "selection", task.source)


def held_out(pairs: Pairs) -> list[int]:
    """Rows of the STS-B training split that belong to the offline judge: about 30 %, by a hash of their text."""
    return [row for row, name in enumerate(_hashes(pairs)) if int(name[:8], 16) / 2**32 < HELD_OUT]


def _hashes(pairs: Pairs) -> list[str]:
    return [pair_sha256(a, b) for a, b in zip(pairs.a, pairs.b, strict=True)]


def _others(pairs: Pairs, rows: list[int]) -> list[int]:
    """All rows but these."""
    return sorted(set(range(len(pairs))) - set(rows))


def standin_pairs(data: PairData) -> Pairs:
    """The offline judge's training rows: held-out STS-B training rows that share no sentence with other rows.

    Other rows are the rest of training, validation and test. Rows from MSRpar are left out as well: they are
    MRPC's pairs with graded scores, and a judge that read them has seen MRPC. The hub's rows do not say where they
    are from: there, those with a sentence of the study's MRPC are left out. CorpusError when STS-B is missing, or
    none of its rows is left.
    """
    train, validation, _ = raw_splits("stsb", test=False, path=data.path)
    _, test, _ = raw_splits("stsb", test=True, path=data.path)
    own = held_out(train)
    others = train.take(_others(train, own))
    seen = {text for split in (others, validation, test) for text in (*split.a, *split.b)}
    unseen = (row for row in own if train.a[row] not in seen and train.b[row] not in seen)
    mrpc = _mrpc_texts(data) if ":" not in train.ids[0] and "mrpc" in data.tasks else frozenset()
    kept = [
        row
        for row in unseen
        if not train.ids[row].startswith("MSRpar:")
        and mrpc.isdisjoint((letters_of(train.a[row]), letters_of(train.b[row])))
    ]
    if not kept:
        raise CorpusError(
            f"data.judge = {STANDIN!r}: of {len(train)} training rows of STS-B none is left for it to learn from"
            "\n  accepted: the whole of STS-B, or another judge"
        )
    return train.take(kept)


def _mrpc_texts(data: PairData) -> frozenset[str]:
    """The sentences of MRPC that a study uses, by `letters_of`, as STS-B writes other blanks and quotes."""
    train, evaluation, _ = raw_splits("mrpc", test="mrpc" in data.final_eval, path=data.path)
    return frozenset(letters_of(text) for split in (train, evaluation) for text in (*split.a, *split.b))


def capped(pairs: Pairs, cap: int, mode: Literal["first", "hash"]) -> Pairs:
    """At most `cap` rows, in file order: the first ones, or those with the smallest sha256 of `a TAB b`."""
    if mode == "first" or len(pairs) <= cap:
        return pairs.take(range(min(cap, len(pairs))))
    keys = _hashes(pairs)
    return pairs.take(sorted(sorted(range(len(keys)), key=keys.__getitem__)[:cap]))


def fingerprint(data: PairData) -> str:
    """sha256 over all that decides training rows, vectors and targets, without the encoder's weights.

    Raises CorpusError when a task or the file of scores is missing.
    """
    rows = [{"task": name, "train": load_task(name, data).train.sha256()} for name in data.tasks]
    return key_of({"tasks": rows, **_targets(data)})


def former_fingerprint(data: PairData) -> str:
    """The fingerprint of training and test rows in old ledgers, which had no separate entries for scores."""
    return key_of({"tasks": [load_task(name, data).fingerprint() for name in data.tasks], **_targets(data)})


def _targets(data: PairData) -> dict[str, Any]:
    """All that decides vectors and targets: the judge, its training data, and how a sentence is encoded."""
    scores = None
    if data.scores_file is not None:
        path = named_path(data.scores_file)
        if not path.is_file():
            raise CorpusError(f"data.scores_file: {path} is missing\n  accepted: a TSV of a, b, score")
        scores = digest_of(path)
    judge = [data.judge, data.judge_symmetric, scores]
    if data.judge == STANDIN:
        judge.append(standin_pairs(data).sha256())
    return {"judge": judge, "prompt": data.prompt, "max_length": data.max_length}
