"""What a study holds out of its own rows: is the second text found by the first, does cosine follow the label?

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
    """One for every set that holds rows out, and one more where some of them are for searches."""
    table: dict[str, Task[Columns, str]] = {}
    for name, one in data.datasets.items():
        if one.hold is not None:
            table[f"{HELD}{name}"] = _task(f"{HELD}{name}", one, partial(held_out, data, name, "test"))
        if one.hold is not None and one.hold.dev:
            table[f"dev/{HELD}{name}"] = _task(f"dev/{HELD}{name}", one, partial(held_out, data, name, "dev"))
    return Table(table, dict.fromkeys((HELD, f"dev/{HELD}"), partial(_lacking, data)))


def _lacking(data: RecipeData, name: str) -> NoReturn:
    """LookupError, in words of what would bring a task of this name."""
    of = name.removeprefix("dev/").removeprefix(HELD)
    if of not in data.datasets:
        raise LookupError(f"{HELD}NAME, for one of data.datasets that has `hold:`: {', '.join(data.datasets)}")
    share = "`dev` in `hold:`" if is_dev(name) else "`hold:`"
    raise LookupError(f"{name} comes with {share} under data.datasets.{of}")


def _task(name: str, one: TrainingSet, read: Callable[[], Columns]) -> Task[Columns, str]:
    metrics = _metrics(name, one)
    return Task(
        name=name,
        metrics=dict.fromkeys(metrics, True),
        headline=metrics[0],
        benchmark=small(read, _fingerprint),
        texts=lambda columns: (text for texts in columns.texts.values() for text in texts),
        score=partial(_graded if one.labelled else _found, name),
        item_texts=_graded_texts if one.labelled else _found_texts,
        source="the study's own rows",
        version=2,  # 1 named texts without the marks on their letters
    )


def _metrics(name: str, one: TrainingSet) -> tuple[str, ...]:
    """Of pairs with a label; or of texts that are to be found, and of triplets where there is a third column."""
    if one.labelled is not None:
        return f"{name}/spearman", f"{name}/auc"
    triplets = (f"{name}/triplets",) if len(one.texts) > 2 else ()
    return f"{name}/mrr", *retrieval.metric_names(name)[:-1], *triplets


def _fingerprint(columns: Columns) -> str:
    return hashlib.sha256(repr((dict(columns.texts), columns.labels)).encode()).hexdigest()


def _graded_texts(columns: Columns, metric: str) -> dict[str, str]:
    """Both texts of a pair."""
    return pair_item_texts(_pairs(columns))


def _found_texts(columns: Columns, metric: str) -> dict[str, str]:
    """A text with the first that stands beside it; of a triplet, and with the one that should be farther away."""
    a, b, *rest = columns.texts.values()
    if metric.endswith("/triplets"):
        names = _triplet_ids(pair_items(_pairs(columns)).ids, rest[0])
        return {name: f"{x} | {y} | not: {z}" for name, x, y, z in zip(names, a, b, rest[0], strict=True)}
    beside = dict(zip(reversed(a), reversed(b), strict=True))
    queries, answers = list(dict.fromkeys(a)), list(dict.fromkeys(b))
    told = dict(zip(text_items(answers).ids, answers, strict=True))
    asked = zip(text_items(queries).ids, queries, strict=True)
    return told | {name: f"{text} | {beside[text]}" for name, text in asked}


def _pairs(columns: Columns) -> Pairs:
    """The first two columns, with the labels where there are some."""
    a, b, *_ = columns.texts.values()
    gold = np.zeros(len(a)) if columns.labels is None else np.array(columns.labels, np.float64)
    return Pairs(tuple(map(str, range(len(a)))), tuple(a), tuple(b), gold)


def _triplet_ids(rows: Sequence[str], negatives: Sequence[str]) -> list[str]:
    return [f"{row}-{text_key(text)}" for row, text in zip(rows, negatives, strict=True)]


def _graded(name: str, columns: Columns, encode: EncodeTexts) -> list[Score]:
    """Spearman of cosine and label; where the labels are two, the area under the ROC curve too."""
    a, b = columns.texts.values()
    pairs = _pairs(columns)
    gold, items = pairs.gold, pair_items(pairs)
    cosines = aligned_cosines(encode(a), encode(b))
    scores = [score_of_items(f"{name}/spearman", "spearman", items.ids, items.groups, cosines, gold)]
    if len(set(gold.tolist())) == 2:
        right = (gold == gold.max()).astype(np.float64)
        scores.append(score_of_items(f"{name}/auc", "auc", items.ids, items.groups, cosines, right))
    return scores


def _found(name: str, columns: Columns, encode: EncodeTexts) -> list[Score]:
    """Rank of the best right one among all distinct second texts, for every distinct first; right are those that
    stand beside it in a row. Texts that rows tie together are resampled together."""
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
