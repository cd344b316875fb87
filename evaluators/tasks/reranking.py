"""Reranking: does the right candidate rank above the wrong ones?

table = tasks("data")        # {"rerank/AskUbuntuDupQuestions": Task, ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from corpora.benchmarks import reranking
from corpora.benchmarks.pairs import text_key
from corpora.benchmarks.reranking import Reranked
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.retrieval import TIED
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import unit
from evaluators.tasks.task import EncodeTexts, Task, Tasks, small

Queries = tuple[Reranked, ...]
FIGURES = ("map_at_1", "mrr_at_1", "map")


def tasks(path: str | None) -> Tasks:
    """Every task by name; path: a folder to look in first."""
    return {f"rerank/{name}": _task(name, path) for name in reranking.NAMES}


def _task(name: str, path: str | None) -> Task[Queries, str]:
    task = f"rerank/{name}"
    return Task(
        name=task,
        metrics={f"{task}/{figure}": True for figure in FIGURES},
        headline=f"{task}/mrr_at_1",
        benchmark=small(partial(reranking.read, name, path=path)),
        texts=_texts,
        score=partial(_score, task),
        item_texts=_item_texts,
        version=2,  # 1 let rounding part what is equal
        source="Lei et al. 2016; Cohan et al. 2020; Liu et al. 2018; figures: SAN, figure 2",
    )


def _texts(queries: Queries) -> Iterator[str]:
    for row in queries:
        yield from (row.query, *row.positive, *row.negative)


def _score(task: str, queries: Queries, encode: EncodeTexts) -> list[Score]:
    """map_at_1 follows trec_eval: 1 over the number of right candidates if the first is right, else 0.

    mrr_at_1 equals precision at 1. A tie counts against the right candidate.
    """
    orders = [_order(row, encode) for row in queries]
    right = [order < len(row.positive) for row, order in zip(queries, orders, strict=True)]
    first = np.array([found[0] for found in right], np.float64)
    figures = {
        "map_at_1": first / [found.sum() for found in right],
        "mrr_at_1": first,
        "map": np.array([_average_precision(found) for found in right]),
    }
    ids, groups = _ids(queries), [row.query for row in queries]
    *scores, last = [
        score_of_items(f"{task}/{name}", "mean", ids, groups, values) for name, values in figures.items()
    ]
    firsts = [
        row.negative[order[0] - len(row.positive)] if order[0] >= len(row.positive) else ""
        for row, order in zip(queries, orders, strict=True)
    ]
    return [*scores, replace(last, taken_for=[text and text_key(text) for text in firsts])]


def _ids(queries: Queries) -> list[str]:
    return [json.dumps([number, row.query]) for number, row in enumerate(queries)]


def _item_texts(queries: Queries, metric: str) -> dict[str, str]:
    """Display texts: a query with its first right candidate; and each wrong candidate alone."""
    wrong = {text_key(text): text for row in queries for text in row.negative}
    return wrong | {
        name: f"{row.query} | {row.positive[0]}" for name, row in zip(_ids(queries), queries, strict=True)
    }


def _order(row: Reranked, encode: EncodeTexts) -> np.ndarray:
    """Indices of the candidates (right ones, then wrong ones) by falling cosine. -> (K,) integers.

    Wrong ones come first among ties, which are equal up to rounding.
    """
    vectors = unit(encode([row.query, *row.positive, *row.negative]).astype(np.float64))
    right = np.arange(len(vectors) - 1) < len(row.positive)
    cosines = vectors[1:] @ vectors[0]
    return np.lexsort((right, -np.where(right, cosines, cosines + TIED)))


def _average_precision(right: np.ndarray) -> float:
    """Mean over the right candidates of the precision at their ranks. (K,) bool -> scalar."""
    return float((np.cumsum(right) / np.arange(1, len(right) + 1))[right].mean())
