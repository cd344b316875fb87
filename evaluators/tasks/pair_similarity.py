"""How well scores of sentence pairs follow gold, and how often a query finds its own partner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from corpora.difficulty.rows import PairTask
from evaluators.metrics.item_metrics import hits, reciprocal, score_of_items, spearman
from evaluators.metrics.retrieval import cosine_ranks
from evaluators.metrics.scores import Score

RELEVANT = 0.8  # a graded pair from here up counts as a true match
BLOCK = 1 << 16  # candidate pairs scored at once
ROUNDING = 1e-5  # float32 scores may leave their bound by this much

_CORRELATIONS = ("spearman", "pearson")
TASKS = {
    "similarity": _CORRELATIONS,
    "retrieval": ("recall@1", "mrr", "recall@1_restricted", "mrr_restricted"),
    "isolation": ("isolated_gain",),
    "dev/similarity": (*_CORRELATIONS, "isolated_gain"),
}  # what `evaluate:` may name; dev/ is measured on a part of the training pairs, for choosing settings
ISOLATING = tuple(task for task, figures in TASKS.items() if "isolated_gain" in figures)

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


def metric_names(data_sets: Sequence[str], tasks: Sequence[str]) -> dict[str, bool]:
    """Every metric these tasks yield on these data sets; larger is better in all of them."""
    return {
        _metric(data_set, task, figure): True for data_set in data_sets for task in tasks for figure in TASKS[task]
    }


def headlines(data_sets: Sequence[str], tasks: Sequence[str]) -> tuple[str, ...]:
    """The metric that decides each task on each data set: the first that `TASKS` lists."""
    return tuple(_metric(data_set, task, TASKS[task][0]) for data_set in data_sets for task in tasks)


def _metric(data_set: str, task: str, figure: str) -> str:
    return f"{'dev/' if task.startswith('dev/') else ''}{data_set}/{figure}"


def pair_metrics(task: PairTask, predicted: Predicted, control: Predicted | None = None) -> list[Score]:
    """Spearman and Pearson over the pairs; Recall@1 and MRR over the queries, all and truly matching ones.

    Metrics are named `{task}/spearman`, ... The restricted ones keep the candidates and ask only queries whose
    pair is a paraphrase (gold 1) or, where gold is graded, at least 0.8. With a control, which lacks only the
    difficulty signal, `{task}/isolated_gain` is how far Spearman lies above the better of control and frozen
    cosine: a search that maximises Spearman itself is paid for a smaller gamma. `{task}/diag/...` have no items.
    """
    pairs = task.evaluation
    groups = pairs.groups()
    scores = [
        score_of_items(f"{task.name}/spearman", "spearman", pairs.ids, groups, predicted.scores, pairs.gold),
        score_of_items(f"{task.name}/pearson", "pearson", pairs.ids, groups, predicted.scores, pairs.gold),
    ]
    if control is not None:
        worth = [spearman(pairs.gold, said) for said in (predicted.scores, control.scores, predicted.frozen)]
        scores.append(Score(metric=f"{task.name}/isolated_gain", value=worth[0] - max(worth[1:])))
    ranks = partner_ranks(task, predicted)
    if ranks is not None:
        scores += _retrieval(task, "", ranks, np.arange(len(ranks)), groups)
        matching = np.flatnonzero(pairs.gold >= (RELEVANT if task.graded else 1.0))
        if len(matching):
            scores += _retrieval(task, "_restricted", ranks, matching, groups)
    diagnostics = dict(predicted.diagnostics)
    if predicted.train_scores is not None:
        diagnostics["train_spearman"] = spearman(task.train.gold, predicted.train_scores)
    return scores + [Score(metric=f"{task.name}/diag/{name}", value=value) for name, value in diagnostics.items()]


def partner_ranks(task: PairTask, predicted: Predicted) -> np.ndarray | None:
    """Rank of every query's own partner among the distinct side-b texts, (N,) from 1; None without retrieval."""
    _, gold = task.evaluation.candidates()
    if predicted.vectors is not None:
        return vector_ranks(*predicted.vectors, gold)
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


def vector_ranks(queries: np.ndarray, candidates: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Rank of each query's partner by cosine, ties counting against it. (N, D), (K, D), (N,) columns -> (N,)."""
    return cosine_ranks(queries, candidates, gold[:, None].tolist())


def bounded_ranks(score: ScorePairs, anchor: np.ndarray, reach: float, gold: np.ndarray) -> np.ndarray:
    """Rank of each query's partner, 1 + the others that score as high or higher, without scoring every pair.

    score(rows, columns) -> scores of those pairs, which stay within `reach` of a known anchor. A candidate whose
    anchor lies more than `reach` above the partner's score must win, one as far below must lose: only the band
    between is scored. anchor (N, K), gold (N,) columns -> (N,) from 1.
    """
    queries = np.arange(len(gold))
    own = score(queries, gold)  # (N,)
    slack = reach + ROUNDING
    ranks = 1 + (anchor > (own + slack)[:, None]).sum(1)
    step = max(1, BLOCK // anchor.shape[1])
    for start in range(0, len(gold), step):
        near = np.abs(anchor[start : start + step] - own[start : start + step, None]) <= slack
        rows, columns = np.nonzero(near)
        rows += start
        others = columns != gold[rows]
        rows, columns = rows[others], columns[others]
        beaten = score(rows, columns) >= own[rows]
        ranks += np.bincount(rows[beaten], minlength=len(gold))
    return ranks
