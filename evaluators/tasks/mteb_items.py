"""What mteb's tasks tell of single items, as scores that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.benchmarks.pairs import Pairs
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.named_items import pair_items, text_items

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

CLASSES_OF_PAIRS = "PairClassification"  # what mteb calls a task whose figure, an average precision, has no items
MEASURES = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P", "hit_rate": "success"}


def scores_of_items(prefix: str, of: AbsTask, split: str, subset: str, told: Any) -> list[Score]:
    """Scores of what mteb tells of a split; none for the kinds of task that tell nothing of their items.

    Graded pairs: cosines. Classified rows: how often each is right over mteb's ten classifiers. Retrieval: the
    figure of each query. Pairs of two classes: cosines, as ROC-AUC, which has items. Sentences and their
    translations: what each row adds to F1.
    """
    from mteb import abstasks as kinds

    main, rows = of.metadata.main_score, _rows(of, split, subset)
    metric = f"{prefix}{main}"
    if isinstance(of, kinds.AbsTaskSTS) and main == "cosine_spearman":
        graded = _pairs(rows, of.column_names, "score")
        return [score_of_items(metric, "spearman", *pair_items(graded), told["cosine_scores"], graded.gold)]
    if isinstance(of, kinds.AbsTaskPairClassification):
        columns = of.input1_column_name, of.input2_column_name
        if len(rows) == 1:  # all pairs in one row, as sets of mteb's first version are stored
            rows = rows[0]
        pairs = _pairs(rows, columns, of.label_column_name)
        return [score_of_items(f"{prefix}auc", "auc", *pair_items(pairs), told["cosine_scores"], pairs.gold)]
    if isinstance(of, kinds.AbsTaskBitextMining) and main == "f1" and not of.parallel_subsets:
        return _of_translations(metric, rows, told)
    if isinstance(of, kinds.AbsTaskRetrieval):
        return _of_queries(metric, of, rows, told)
    if isinstance(of, kinds.AbsTaskClassification) and main == "accuracy" and not of.is_cross_validation:
        return _of_rows(metric, rows[of.input_column_name], np.array(rows[of.label_column_name]), told)
    return []


def _rows(of: AbsTask, split: str, subset: str) -> Any:
    assert of.dataset is not None
    return of.dataset[subset][split] if subset in of.dataset else of.dataset[split]


def _pairs(rows: Any, columns: Sequence[Any], gold: str | None) -> Pairs:
    a, b = (tuple(rows[column]) for column in columns)
    values = np.zeros(len(a)) if gold is None else np.array(rows[gold], np.float64)
    return Pairs(tuple(map(str, range(len(a)))), a, b, values)


def _of_rows(metric: str, texts: Sequence[str], labels: np.ndarray, told: Sequence[Sequence[Any]]) -> list[Score]:
    """told: the class of each row by each classifier. None where a row has several classes."""
    if labels.ndim != 1:
        return []
    right = np.mean([np.array(said) == labels for said in told], axis=0)
    return [score_of_items(metric, "mean", *text_items(texts), right)]


def _of_translations(metric: str, rows: Any, told: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Score]:
    """Per sentence 2 / (1 + how often its translation is taken) where that is found, else 0: their mean is the F1.

    F1 of every translation with equal weight, each being right for one sentence. told: the nearest of each row.
    """
    if "gold" in rows.column_names:  # a set whose sentences are not all translated
        return []
    pairs = _pairs(rows, ("sentence1", "sentence2"), None)
    (nearest,) = told.values()
    taken = np.array([int(one["corpus_id"]) for one in nearest])
    times = np.bincount(taken, minlength=len(pairs))
    found = (taken == np.arange(len(pairs))) * 2 / (1 + times)
    return [score_of_items(metric, "mean", *pair_items(pairs), found)]


def _of_queries(
    metric: str, of: AbsTask, rows: Mapping[str, Any], told: Mapping[str, Mapping[str, float]]
) -> list[Score]:
    """The figure of each query by trec_eval, as mteb has it computed. told: query -> document -> score."""
    import pytrec_eval

    measure, _, cut = of.metadata.main_score.rpartition("_at_")
    if measure not in MEASURES:
        return []
    ranked = {
        query: {document: score for document, score in found.items() if not (skips and document == query)}
        for query, found in told.items()
        for skips in [of.ignore_identical_ids]
    }
    relevant, asked = rows["relevant_docs"], rows["queries"]
    by_query = pytrec_eval.RelevanceEvaluator(relevant, {f"{MEASURES[measure]}.{cut}"}).evaluate(ranked)
    queries = list(by_query)
    values = np.array([by_query[query][f"{MEASURES[measure]}_{cut}"] for query in queries])
    text_of = dict(zip(asked["id"], map(str, asked["text"]), strict=True))
    items = text_items([text_of[query] for query in queries])
    return [score_of_items(metric, "mean", *items, values)] if queries else []
