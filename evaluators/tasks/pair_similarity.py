"""What is measured of scores of sentence pairs: how well they follow gold, how often a query finds its partner.

A reader of these tasks predicts: data sets by name -> for each what a model says of its pairs, and what its
control says, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from corpora.difficulty.pairs import PairData, for_selection, load_task
from corpora.difficulty.rows import PairTask
from evaluators.metrics.item_metrics import hits, reciprocal, score_of_items, spearman
from evaluators.metrics.retrieval import TIED, cosine_ranks
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import check_finite
from evaluators.tasks.named_items import both_texts
from evaluators.tasks.task import Benchmark, Task

RELEVANT = 0.8  # a graded pair from here up counts as a true match
BLOCK = 1 << 16  # candidate pairs scored at once
ROUNDING = 1e-5  # float32 scores may leave their bound by this much

FIGURES = {
    "similarity": ("spearman", "pearson"),
    "retrieval": ("recall@1", "mrr", "recall@1_restricted", "mrr_restricted"),
    "isolation": ("isolated_gain",),
    "dev/similarity": ("spearman", "pearson", "isolated_gain"),
}  # dev/ is measured on a part of the training pairs, for choosing settings; the first figure decides
ISOLATING = tuple(name for name, figures in FIGURES.items() if "isolated_gain" in figures)
PREDICTIONS = "predictions"  # what the models of these tasks give

ScorePairs = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Predicted(Protocol):
    """What one model says about a task's evaluation pairs (N of them, K distinct side-b texts).

    scores (N,); frozen (N,) cosines of the same pairs; train_scores of the training pairs, or None. For retrieval
    either `vectors`, queries (N, D) and candidates (K, D), or `pair_score` with the `anchor` (N, K) that it stays
    within `reach` of; neither: no retrieval.
    """

    @property
    def scores(self) -> np.ndarray: ...
    @property
    def frozen(self) -> np.ndarray: ...
    @property
    def train_scores(self) -> np.ndarray | None: ...
    @property
    def vectors(self) -> tuple[np.ndarray, np.ndarray] | None: ...
    @property
    def pair_score(self) -> ScorePairs | None: ...
    @property
    def anchor(self) -> np.ndarray | None: ...
    @property
    def reach(self) -> float: ...
    @property
    def diagnostics(self) -> Mapping[str, float]: ...


Said = tuple[Predicted, Predicted | None]  # by a model, and by its control


def tasks(data: PairData) -> dict[str, Task[PairTask, str]]:
    """The family's tasks: every kind on every data set of the study."""
    every = (_task(kind, pair_set, data) for kind in FIGURES for pair_set in data.tasks)
    return {task.name: task for task in every}


def _task(kind: str, pair_set: str, data: PairData) -> Task[PairTask, str]:
    dev = kind.startswith("dev/")
    metrics = [f"{'dev/' * dev}{pair_set}/{figure}" for figure in FIGURES[kind]]

    def load() -> PairTask:
        whole = load_task(pair_set, data)
        return for_selection(whole) if dev else whole

    def score(rows: PairTask, predict: Callable[[Sequence[str]], Sequence[Said]]) -> list[Score]:
        return SCORES[kind](rows, *predict([rows.name])[0])

    return Task(
        name=f"{kind}/{pair_set}",
        metrics=dict.fromkeys(metrics, True),
        headline=metrics[0],
        benchmark=Benchmark(fingerprint=lambda: load().evaluation.sha256(), load=load),
        texts=lambda rows: [rows.name],
        score=score,
        item_texts=lambda rows, metric: both_texts(rows.evaluation.ids, rows.evaluation),
        source="Difficulty (Hwang 2026), sections 4 and 5",
        reads=PREDICTIONS,
        version=2 if kind == "retrieval" else 1,  # 1 let rounding part what is equal
    )


def similarity_scores(task: PairTask, predicted: Predicted, control: Predicted | None = None) -> list[Score]:
    """`{task}/spearman` and `/pearson` over the pairs; what a model says of itself as `/diag/...`, without
    items."""
    pairs = task.evaluation
    groups = pairs.groups()
    diagnostics = dict(predicted.diagnostics)
    if predicted.train_scores is not None:
        diagnostics["train_spearman"] = spearman(task.train.gold, predicted.train_scores)
    return [
        score_of_items(f"{task.name}/spearman", "spearman", pairs.ids, groups, predicted.scores, pairs.gold),
        score_of_items(f"{task.name}/pearson", "pearson", pairs.ids, groups, predicted.scores, pairs.gold),
        *(Score(metric=f"{task.name}/diag/{name}", value=value) for name, value in diagnostics.items()),
    ]


def isolation_scores(task: PairTask, predicted: Predicted, control: Predicted | None = None) -> list[Score]:
    """How far Spearman lies above the better of control and frozen cosine; nothing without a control.

    The control lacks only the difficulty signal: a search that maximised Spearman itself would be paid for a
    smaller gamma.
    """
    if control is None:
        return []
    gold = task.evaluation.gold
    worth = [spearman(gold, said) for said in (predicted.scores, control.scores, predicted.frozen)]
    return [Score(metric=f"{task.name}/isolated_gain", value=worth[0] - max(worth[1:]))]


def retrieval_scores(task: PairTask, predicted: Predicted, control: Predicted | None = None) -> list[Score]:
    """Recall@1 and MRR over the queries, all and truly matching ones; nothing of a model that cannot rank.

    The restricted ones keep the candidates and ask only queries whose pair is a paraphrase (gold 1) or, where gold
    is graded, at least 0.8.
    """
    ranks = partner_ranks(task, predicted)
    if ranks is None:
        return []
    pairs = task.evaluation
    groups = pairs.groups()
    matching = np.flatnonzero(pairs.gold >= (RELEVANT if task.graded else 1.0))
    return [
        *_retrieval(task, "", ranks, np.arange(len(ranks)), groups),
        *(_retrieval(task, "_restricted", ranks, matching, groups) if len(matching) else ()),
    ]


def dev_scores(task: PairTask, predicted: Predicted, control: Predicted | None = None) -> list[Score]:
    """What a search may choose by."""
    return [*similarity_scores(task, predicted), *isolation_scores(task, predicted, control)]


SCORES = {
    "similarity": similarity_scores,
    "retrieval": retrieval_scores,
    "isolation": isolation_scores,
    "dev/similarity": dev_scores,
}


def partner_ranks(task: PairTask, predicted: Predicted) -> np.ndarray | None:
    """Rank of every query's own partner among the distinct side-b texts, (N,) from 1; None without retrieval."""
    _, gold = task.evaluation.candidates()
    if predicted.vectors is not None:
        return cosine_ranks(*predicted.vectors, gold[:, None].tolist())
    if predicted.pair_score is not None and predicted.anchor is not None:
        return bounded_ranks(predicted.pair_score, predicted.anchor, predicted.reach, gold)
    return None


def _retrieval(
    task: PairTask, suffix: str, ranks: np.ndarray, rows: np.ndarray, groups: Sequence[str]
) -> list[Score]:
    ids = [task.evaluation.ids[row] for row in rows]
    tied = [groups[row] for row in rows]
    return [
        score_of_items(f"{task.name}/recall@1{suffix}", "mean", ids, tied, hits(ranks[rows], 1)),
        score_of_items(f"{task.name}/mrr{suffix}", "mean", ids, tied, reciprocal(ranks[rows])),
    ]


def bounded_ranks(score: ScorePairs, anchor: np.ndarray, reach: float, gold: np.ndarray) -> np.ndarray:
    """Rank of each query's partner, 1 + the others that score as high or higher, without scoring every pair.

    score(rows, columns) -> scores of those pairs, which stay within `reach` of a known anchor. A candidate whose
    anchor lies more than `reach` above the partner's score must win, one as far below must lose: only the band
    between is scored. anchor (N, K), gold (N,) columns -> (N,) from 1.
    """
    queries = np.arange(len(gold))
    own = score(queries, gold)  # (N,)
    check_finite("anchor", anchor)
    check_finite("scores of the partners", own)
    slack = reach + ROUNDING
    ranks = 1 + (anchor > (own + slack)[:, None]).sum(1)
    step = max(1, BLOCK // anchor.shape[1])
    for start in range(0, len(gold), step):
        near = np.abs(anchor[start : start + step] - own[start : start + step, None]) <= slack
        rows, columns = np.nonzero(near)
        rows += start
        others = columns != gold[rows]
        rows, columns = rows[others], columns[others]
        theirs = score(rows, columns)
        check_finite("scores", theirs)
        beaten = theirs >= own[rows] - TIED
        ranks += np.bincount(rows[beaten], minlength=len(gold))
    return ranks
