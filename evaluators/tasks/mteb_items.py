"""Item-level scores from the predictions that mteb's tasks write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.benchmarks.pairs import Pairs, text_key
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.named_items import pair_item_texts, pair_items, text_items

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

CLASSES_OF_PAIRS = "PairClassification"  # what mteb calls a task whose figure, an average precision, has no items
MEASURES = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P", "hit_rate": "success"}


def scores_of_items(prefix: str, of: AbsTask, split: str, subset: str, predictions: Any) -> list[Score]:
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
        return [score_of_items(metric, "spearman", *pair_items(graded), predictions["cosine_scores"], graded.gold)]
    if isinstance(of, kinds.AbsTaskPairClassification):
        pairs = _pairs_of_classes(of, rows)
        return [
            score_of_items(f"{prefix}auc", "auc", *pair_items(pairs), predictions["cosine_scores"], pairs.gold)
        ]
    if isinstance(of, kinds.AbsTaskBitextMining) and main == "f1" and not of.parallel_subsets:
        return _of_translations(metric, rows, predictions)
    if isinstance(of, kinds.AbsTaskRetrieval):
        return _of_queries(metric, of, rows, predictions)
    if isinstance(of, kinds.AbsTaskMultilabelClassification):
        return []
    if isinstance(of, kinds.AbsTaskClassification) and main == "accuracy" and not of.is_cross_validation:
        return _of_rows(metric, rows[of.input_column_name], np.array(rows[of.label_column_name]), predictions)
    return []


def texts_of_items(of: AbsTask, split: str, subset: str) -> dict[str, str]:
    """What a person reads of the items of a split, and of what they may be taken for, by their names.

    Pairs: both texts. Classified rows: the text with its class. Retrieval: the query with a right document.
    """
    from mteb import abstasks as kinds

    rows = _rows(of, split, subset)
    if isinstance(of, kinds.AbsTaskSTS):
        return pair_item_texts(_pairs(rows, of.column_names, "score"))
    if isinstance(of, kinds.AbsTaskPairClassification):
        return pair_item_texts(_pairs_of_classes(of, rows))
    if isinstance(of, kinds.AbsTaskBitextMining) and not of.parallel_subsets:
        pairs = _pairs(rows, ("sentence1", "sentence2"), None)
        return dict(zip(map(text_key, pairs.b), pairs.b, strict=True)) | pair_item_texts(pairs)
    if isinstance(of, kinds.AbsTaskRetrieval):
        return _texts_of_queries(rows)
    if isinstance(of, kinds.AbsTaskClassification):
        texts, classes = rows[of.input_column_name], [str(label) for label in rows[of.label_column_name]]
        label_texts = (
            dict(zip(classes, rows["label_text"], strict=True)) if "label_text" in rows.column_names else {}
        )
        named = zip(text_items(texts).ids, texts, classes, strict=True)
        return label_texts | {name: f"{text} | {label_texts.get(label, label)}" for name, text, label in named}
    return {}


def _texts_of_queries(rows: Mapping[str, Any]) -> dict[str, str]:
    """Queries by names of their texts, documents by mteb's own."""
    corpus, asked, relevant = rows["corpus"], rows["queries"], rows["relevant_docs"]
    titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
    by_name = {
        name: f"{title} {text}".strip()
        for name, title, text in zip(corpus["id"], titles, corpus["text"], strict=True)
    }
    queries, texts = list(asked["id"]), list(map(str, asked["text"]))
    kept = [row for row, query in enumerate(queries) if query in relevant]
    for name, row in zip(text_items([texts[row] for row in kept]).ids, kept, strict=True):
        answers = [by_name[document] for document in _answers(relevant[queries[row]]) if document in by_name]
        by_name[name] = " | ".join([texts[row], *answers[:1]])
    return by_name


def _answers(relevant: Mapping[str, float]) -> list[str]:
    """Documents that answer a query."""
    return [document for document, worth in relevant.items() if worth > 0]


def _rows(of: AbsTask, split: str, subset: str) -> Any:
    assert of.dataset is not None
    return of.dataset[subset][split] if subset in of.dataset else of.dataset[split]


def _pairs(rows: Any, columns: Sequence[Any], gold: str | None) -> Pairs:
    a, b = (tuple(rows[column]) for column in columns)
    values = np.zeros(len(a)) if gold is None else np.array(rows[gold], np.float64)
    return Pairs(tuple(map(str, range(len(a)))), a, b, values)


def _pairs_of_classes(of: Any, rows: Any) -> Pairs:
    if len(rows) == 1:  # all pairs in one row, as sets of mteb's first version are stored
        rows = rows[0]
    return _pairs(rows, (of.input1_column_name, of.input2_column_name), of.label_column_name)


def _of_rows(
    metric: str, texts: Sequence[str], labels: np.ndarray, predictions: Sequence[Sequence[Any]]
) -> list[Score]:
    """The accuracy, from the class that each classifier predicts for each row."""
    right = np.mean([np.array(classes) == labels for classes in predictions], axis=0)
    score = score_of_items(metric, "mean", *text_items(texts), right)
    return [replace(score, taken_for=_mistaken_for(labels, predictions))]


def _mistaken_for(labels: np.ndarray, predictions: Sequence[Sequence[Any]]) -> list[str]:
    """The class that most classifiers predict for each row, on ties the first; "" if it is the right one."""
    majority = [Counter(classes).most_common(1)[0][0] for classes in zip(*predictions, strict=True)]
    return ["" if taken == label else str(taken) for taken, label in zip(majority, labels.tolist(), strict=True)]


def _of_translations(
    metric: str, rows: Any, predictions: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Score]:
    """For each sentence 2 / (1 + how often its translation is predicted) if found, else 0; the mean is the F1.

    The F1 weights all translations equally; each is right for one sentence. predictions: the nearest of each row.
    """
    if "gold" in rows.column_names:  # a set whose sentences are not all translated
        return []
    pairs = _pairs(rows, ("sentence1", "sentence2"), None)
    (nearest,) = predictions.values()
    taken = np.array([int(one["corpus_id"]) for one in nearest])
    times = np.bincount(taken, minlength=len(pairs))
    right = taken == np.arange(len(pairs))
    score = score_of_items(metric, "mean", *pair_items(pairs), right * 2 / (1 + times))
    wrong = ["" if found else text_key(pairs.b[other]) for found, other in zip(right, taken, strict=True)]
    return [replace(score, taken_for=wrong)]


def _of_queries(
    metric: str, of: AbsTask, rows: Mapping[str, Any], predictions: Mapping[str, Mapping[str, float]]
) -> list[Score]:
    """The figure of each query, computed by trec_eval as in mteb. predictions: query -> document -> score."""
    import pytrec_eval

    measure, _, cut = of.metadata.main_score.rpartition("_at_")
    if measure not in MEASURES:
        return []
    skips = of.ignore_identical_ids
    ranked = {
        query: {document: score for document, score in found.items() if not (skips and document == query)}
        for query, found in predictions.items()
    }
    relevant, asked = rows["relevant_docs"], rows["queries"]
    by_query = pytrec_eval.RelevanceEvaluator(relevant, {f"{MEASURES[measure]}.{cut}"}).evaluate(ranked)
    queries = list(by_query)
    values = np.array([by_query[query][f"{MEASURES[measure]}_{cut}"] for query in queries])
    text_of = dict(zip(asked["id"], map(str, asked["text"]), strict=True))
    items = text_items([text_of[query] for query in queries])
    if not queries:
        return []
    taken = [_first_wrong(ranked[query], relevant[query]) for query in queries]
    return [replace(score_of_items(metric, "mean", *items, values), taken_for=taken)]


def _first_wrong(scores: Mapping[str, float], relevant: Mapping[str, float]) -> str:
    """The document that stands first, where it answers nothing; among equals one that does not."""
    answers = set(_answers(relevant))
    first = max(scores, key=lambda document: (scores[document], document not in answers), default="")
    return "" if first in answers else first
