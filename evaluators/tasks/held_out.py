"""Tasks on a study's held-out rows: does the first text retrieve the second, or cosine follow the label?

table = tasks(data)          # {"held/mine": Task, "dev/held/mine": Task}
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from corpora.benchmarks.pairs import Pairs, text_key
from corpora.sentence_transformers.corpus import Columns, held_out
from corpora.sentence_transformers.data import RecipeData, TrainingSet
from evaluators.metrics import retrieval
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.retrieval import TIED, ranking_scores
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines
from evaluators.tasks.named_items import pair_item_texts, pair_items, text_items
from evaluators.tasks.task import EncodeTexts, Table, Task, is_dev, small

HELD = "held/"


def tasks(data: RecipeData) -> Table:
    """A task for every set that holds rows out, and a dev task if some of them are for searches."""
    table: dict[str, Task[Columns, str]] = {}
    for name, rows in data.datasets.items():
        if rows.hold is not None:
            table[f"{HELD}{name}"] = _task(f"{HELD}{name}", rows, partial(held_out, data, name, "test"))
        if rows.hold is not None and rows.hold.dev:
            table[f"dev/{HELD}{name}"] = _task(f"dev/{HELD}{name}", rows, partial(held_out, data, name, "dev"))
    return Table(table, dict.fromkeys((HELD, f"dev/{HELD}"), partial(_lacking, data)))


def _lacking(data: RecipeData, name: str) -> NoReturn:
    """Raise LookupError, which says how a study gets a task of this name."""
    dataset = name.removeprefix("dev/").removeprefix(HELD)
    if dataset not in data.datasets:
        raise LookupError(f"{HELD}NAME, for one of data.datasets that has `hold:`: {', '.join(data.datasets)}")
    share = "`dev` in `hold:`" if is_dev(name) else "`hold:`"
    raise LookupError(f"{name} comes with {share} under data.datasets.{dataset}")


def _task(name: str, rows: TrainingSet, read: Callable[[], Columns]) -> Task[Columns, str]:
    metrics = _metrics(name, rows)
    return Task(
        name=name,
        metrics=dict.fromkeys(metrics, True),
        headline=metrics[0],
        benchmark=small(read, _fingerprint),
        texts=lambda columns: (text for texts in columns.texts.values() for text in texts),
        score=partial(_graded if rows.labelled else _retrieved, name),
        item_texts=_graded_texts if rows.labelled else _retrieved_texts,
        source="the study's own rows",
        version=2,  # 1 named texts without the marks on their letters
    )


def _metrics(name: str, rows: TrainingSet) -> tuple[str, ...]:
    """Metric names: of labelled pairs; else of retrieval, and of triplets if there is a third column."""
    if rows.labelled is not None:
        return f"{name}/spearman", f"{name}/auc"
    triplets = (f"{name}/triplets",) if len(rows.texts) > 2 else ()
    return f"{name}/mrr", *retrieval.metric_names(name)[:-1], *triplets


def _fingerprint(columns: Columns) -> str:
    return hashlib.sha256(repr((dict(columns.texts), columns.labels)).encode()).hexdigest()


def _graded_texts(columns: Columns, metric: str) -> dict[str, str]:
    """Display texts of labelled pairs: both texts."""
    return pair_item_texts(_pairs(columns))


def _retrieved_texts(columns: Columns, metric: str) -> dict[str, str]:
    """Display texts: a query with its first answer; an answer alone; or all three texts of a triplet."""
    a, b, *rest = columns.texts.values()
    if metric.endswith("/triplets"):
        names = _triplet_ids(pair_items(_pairs(columns)).ids, rest[0])
        return {name: f"{x} | {y} | not: {z}" for name, x, y, z in zip(names, a, b, rest[0], strict=True)}
    answer_to = dict(zip(reversed(a), reversed(b), strict=True))
    queries, answers = list(dict.fromkeys(a)), list(dict.fromkeys(b))
    answer_texts = dict(zip(text_items(answers).ids, answers, strict=True))
    named_queries = zip(text_items(queries).ids, queries, strict=True)
    return answer_texts | {name: f"{text} | {answer_to[text]}" for name, text in named_queries}


def _pairs(columns: Columns) -> Pairs:
    """The first two columns as pairs, with the labels, or zeros without labels."""
    a, b, *_ = columns.texts.values()
    gold = np.zeros(len(a)) if columns.labels is None else np.array(columns.labels, np.float64)
    return Pairs(tuple(map(str, range(len(a)))), tuple(a), tuple(b), gold)


def _triplet_ids(rows: Sequence[str], negatives: Sequence[str]) -> list[str]:
    return [f"{row}-{text_key(text)}" for row, text in zip(rows, negatives, strict=True)]


def _graded(name: str, columns: Columns, encode: EncodeTexts) -> list[Score]:
    """Spearman of cosine and label; and ROC-AUC if there are exactly two labels."""
    a, b = columns.texts.values()
    pairs = _pairs(columns)
    gold, items = pairs.gold, pair_items(pairs)
    cosines = aligned_cosines(encode(a), encode(b))
    scores = [score_of_items(f"{name}/spearman", "spearman", items.ids, items.groups, cosines, gold)]
    if len(set(gold.tolist())) == 2:
        right = (gold == gold.max()).astype(np.float64)
        scores.append(score_of_items(f"{name}/auc", "auc", items.ids, items.groups, cosines, right))
    return scores


def _retrieved(name: str, columns: Columns, encode: EncodeTexts) -> list[Score]:
    """Retrieval figures of every distinct first text among all distinct second texts, by the best rank of those
    that share a row with it; and triplet accuracy. Texts connected by rows are resampled together."""
    a, b, *rest = columns.texts.values()
    rows = pair_items(_pairs(columns))
    place = {text: number for number, text in enumerate(dict.fromkeys(b))}
    right: dict[str, set[int]] = {}
    tied: dict[str, str] = {}
    for query, text, group in zip(a, b, rows.groups, strict=True):
        right.setdefault(query, set()).add(place[text])
        tied.setdefault(query, group)
    gold = [sorted(places) for places in right.values()]
    ranks, rivals = retrieval.cosine_ranks_and_rivals(encode(list(right)), encode(list(place)), gold)
    taken = retrieval.named(rivals, text_items(list(place)).ids)
    scores = ranking_scores(name, ranks, text_items(list(right)).ids, list(tied.values()), taken)
    for negatives in rest:
        near, far = (aligned_cosines(encode(a), encode(texts)) for texts in (b, negatives))
        nearer = (near > far + TIED).astype(np.float64)
        ids = _triplet_ids(rows.ids, negatives)
        scores.append(score_of_items(f"{name}/triplets", "mean", ids, rows.groups, nearer))
    return scores
