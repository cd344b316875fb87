"""What a stack trains on: one task's frozen vectors, gold, anchors and difficulty targets.

Targets for training are built from training pairs only; those of the evaluation split serve diagnostics alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty import pairs
from corpora.difficulty.rows import PairTask
from corpora.difficulty.surface import hard_lex, per_sentence, surface_complexity
from corpora.store.errors import CorpusError
from corpora.store.telling import Tell, unheard
from trainers.difficulty.judges import Judge, judged
from trainers.encoders.embeddings import embed
from trainers.encoders.frozen_encoder import FrozenEncoder

NO_JUDGE = (
    "data.judge = none, but an arm needs a judge's scores\n  accepted: token_match_standin, scores_file,"
    " or the name of a cross-encoder"
)


def hard_ce(judged: np.ndarray, cosine: np.ndarray, ce_map: str) -> np.ndarray:
    """|CE - (cos + 1) / 2| (`half`: Hwang 2026, equation 7) or |CE - cos| (`identity`). (N,), (N,) -> (N,).

    The identity map is a departure: an encoder whose cosines already follow gold has its error hidden by the
    half map.
    """
    return np.abs(judged - ((cosine + 1) / 2 if ce_map == "half" else cosine))


@dataclass(frozen=True, eq=False)
class Side:
    """One split as rows of the sentence table: a, b (N,) int64; gold (N,); anchor (N,) frozen cosine."""

    pairs: Pairs
    a: np.ndarray
    b: np.ndarray
    gold: np.ndarray
    anchor: np.ndarray
    judged: np.ndarray | None  # the judge's score of each pair, in [0, 1]

    def target(self, name: str, ce_map: str) -> np.ndarray:
        """The named pair target, (N,) in [0, 1]: hard_lex, hard_ce, or label, which is 1 - gold."""
        if name == "hard_lex":
            return self.hard_lex
        if name == "label":
            return 1 - self.gold
        return hard_ce(self.judgement(), self.anchor, ce_map)

    def judgement(self) -> np.ndarray:
        """The judge's score of each pair, (N,) in [0, 1]. CorpusError where there is no judge."""
        if self.judged is None:
            raise CorpusError(NO_JUDGE)
        return self.judged

    def candidate_targets(self) -> dict[str, np.ndarray]:
        """Every target these pairs can have, the label apart, by name: what the headroom report looks at."""
        found = {"hard_lex": self.hard_lex}
        if self.judged is not None:
            found |= {f"hard_ce/{ce_map}": self.target("hard_ce", ce_map) for ce_map in ("half", "identity")}
        return found

    @cached_property
    def hard_lex(self) -> np.ndarray:
        return hard_lex(self.pairs.a, self.pairs.b, self.gold)


@dataclass(frozen=True, eq=False)
class TaskData:
    """One task, ready to train on. x (n, d) float32, unit rows, one per sentence of `task.sentences`.

    origin: where vectors and targets come from, in plain JSON types; logged with every result.
    """

    task: PairTask
    x: np.ndarray
    train: Side
    evaluation: Side
    origin: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def surface(self) -> np.ndarray:
        """The surface complexity label of every sentence. (n,)"""
        return surface_complexity(self.task.sentences)

    @cached_property
    def sentence_hard_lex(self) -> np.ndarray:
        """Mean hard_lex of the TRAINING pairs that hold a sentence; 0 for sentences no such pair holds. (n,)"""
        return self._aggregate(self.train)

    @cached_property
    def evaluated_sentence_hard_lex(self) -> np.ndarray:
        """The evaluation split's own aggregate, for diagnostics. (n,)"""
        return self._aggregate(self.evaluation)

    def _aggregate(self, side: Side) -> np.ndarray:
        means = per_sentence(side.pairs.a, side.pairs.b, side.hard_lex)
        return np.array([means.get(sentence, 0.0) for sentence in self.task.sentences])


def prepared(task: PairTask, encoder: FrozenEncoder, judge: Judge | None, tell: Tell = unheard) -> TaskData:
    """Embed a task and have its pairs judged: once, for all runs to come; later both come from their stores.

    tell: hears, in words, of whatever takes its time, before it starts.
    Raises CorpusError when the judge lacks scores.
    """

    def of_task(words: str) -> None:
        tell(f"{task.name}: {words}")

    embedded = embed(encoder, task.sentences, of_task)
    scores = None if judge is None else judged(judge, task, of_task)
    origin = {
        **task.fingerprint(),
        "source": task.source,
        "embedding": embedded.key,
        "judge": "none" if judge is None else judge.name,
        "judge_saw": [] if judge is None else list(judge.saw),
    }
    return replace(task_data(task, embedded.x, scores), origin=origin)


def for_selection(data: TaskData) -> TaskData:
    """The same task for choosing settings, as in `corpora.difficulty.pairs.for_selection`; nothing is encoded."""
    task = pairs.for_selection(data.task)
    place = {name: row for row, name in enumerate(data.task.train.ids)}
    rows = {sentence: row for row, sentence in enumerate(data.task.sentences)}
    x = data.x[[rows[sentence] for sentence in task.sentences]]
    scores = None
    if data.train.judged is not None:
        halves = {"train": task.train, "evaluation": task.evaluation}
        scores = {name: data.train.judged[[place[i] for i in half.ids]] for name, half in halves.items()}
    return replace(task_data(task, x, scores), origin={**data.origin, **task.fingerprint()})


def task_data(task: PairTask, x: np.ndarray, scores: Mapping[str, np.ndarray] | None) -> TaskData:
    """Join a task with its embeddings and, where there is a judge, its scores of `train` and `evaluation`.

    x (n, d) rows in the order of task.sentences; they are normalised again in float32.
    ValueError when the numbers of rows do not agree.
    """
    if len(x) != len(task.sentences):
        raise ValueError(f"{task.name}: {len(x)} embeddings for {len(task.sentences)} sentences")
    x = x.astype(np.float32)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    place = {sentence: row for row, sentence in enumerate(task.sentences)}

    def side(split: Pairs, judged: np.ndarray | None) -> Side:
        a = np.array([place[sentence] for sentence in split.a])
        b = np.array([place[sentence] for sentence in split.b])
        return Side(split, a, b, split.gold, np.einsum("nd,nd->n", x[a], x[b]), judged)

    return TaskData(
        task,
        x,
        side(task.train, None if scores is None else scores["train"]),
        side(task.evaluation, None if scores is None else scores["evaluation"]),
    )
