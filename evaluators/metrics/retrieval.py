"""Where the right answer stands among the candidates: ranks, Recall@k and reciprocal rank over a stated pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evaluators.metrics.item_metrics import hits, reciprocal, score_of_items
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import check_finite, unit

CUTOFFS = (1, 5, 10, 50)
TIED = 1e-6  # cosines this near are equal: a matrix product rounds equal ones differently, by up to some 1e-7
_CELLS = 1 << 22  # scores held at once: 16 MB of float32


def metric_names(task: str) -> tuple[str, ...]:
    """What `ranking_scores` yields for a task of this name."""
    return (*(f"{task}/recall@{k}" for k in CUTOFFS), f"{task}/mrr")


def ranks_and_rivals(
    scores: np.ndarray, gold: Sequence[Sequence[int]], tied: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Rank of each query's best correct candidate, and the highest of the wrong ones, -1 where the rank is 1.

    The rank is 1 + the wrong candidates that score at least as high: ties count against the query, so an encoder
    that gives one score to everything ranks last, not first. scores (Q, C); gold: per query the columns that are
    correct, at least one. tied: how far below the best a score may lie and still equal it. -> (Q,), (Q,) int64.
    ValueError for a query without a correct candidate, and for a score that is not finite.
    """
    check_finite("scores", scores)
    correct = np.zeros(scores.shape, bool)  # (Q, C)
    for row, columns in enumerate(gold):
        correct[row, list(columns)] = True
    if not correct.any(axis=1).all():
        raise ValueError(f"query {int(np.argmin(correct.any(axis=1)))} has no correct candidate")
    best = np.where(correct, scores, -np.inf).max(axis=1, keepdims=True)
    places = 1 + ((scores >= best - scores.dtype.type(tied)) & ~correct).sum(axis=1)
    return places, np.where(places > 1, np.where(correct, -np.inf, scores).argmax(axis=1), -1)


def cosine_ranks(queries: np.ndarray, candidates: np.ndarray, gold: Sequence[Sequence[int]]) -> np.ndarray:
    """The ranks of `cosine_ranks_and_rivals` alone. (Q, D), (C, D) -> (Q,) int64."""
    return cosine_ranks_and_rivals(queries, candidates, gold)[0]


def cosine_ranks_and_rivals(
    queries: np.ndarray, candidates: np.ndarray, gold: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """`ranks_and_rivals` by cosine in float32, a block of queries at a time. (Q, D), (C, D) -> (Q,), (Q,) int64.

    Equal directions tie, however the product rounds them.
    """
    queries, candidates = unit(queries.astype(np.float32)), unit(candidates.astype(np.float32))
    block = max(1, _CELLS // len(candidates))
    parts = [
        ranks_and_rivals(queries[start : start + block] @ candidates.T, gold[start : start + block], TIED)
        for start in range(0, len(queries), block)
    ]
    places, rivals = (np.concatenate(column) for column in zip(*parts, strict=True))
    return places, rivals


def ranking_scores(
    task: str,
    places: np.ndarray,
    item_ids: Sequence[str],
    group_ids: Sequence[str],
    taken_for: Sequence[str] = (),
) -> list[Score]:
    """Recall at each cut-off and the mean reciprocal rank, with the hit or reciprocal rank of every query.

    places (Q,) ranks from 1. taken_for: (Q,) as in `Score`, which the last one bears for all.
    """
    columns = [hits(places, k) for k in CUTOFFS] + [reciprocal(places)]
    *scores, last = [
        score_of_items(metric, "mean", item_ids, group_ids, values)
        for metric, values in zip(metric_names(task), columns, strict=True)
    ]
    return [*scores, replace(last, taken_for=taken_for)]


def named(rivals: np.ndarray, names: Sequence[str]) -> list[str]:
    """What each query was taken for, "" for none. rivals (Q,) places among the candidates; names of those."""
    return ["" if rival < 0 else names[rival] for rival in rivals.tolist()]
