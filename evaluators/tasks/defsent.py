"""Word prediction from unseen definitions of words that were not trained on.

Source: DefSent, section 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from corpora.benchmarks.pairs import numbered
from corpora.defsent.corpus import asked_fingerprint, questions
from corpora.defsent.data import DefsentData
from corpora.defsent.records import Definition, Questions
from evaluators.metrics.item_metrics import hits, reciprocal, score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, Task

Places = Callable[
    [Sequence[Definition]], np.ndarray
]  # N definitions -> (N, 1) places from 1; below 1: no such word
WordTask = Task[Questions, Definition]
DEFINITIONS = "definitions"  # what these tasks read
CUT = 10  # the paper's code counts a word beyond this place as not found
TOPS = (1, 3, 10)


def tasks(data: DefsentData) -> dict[str, WordTask]:
    """d2w on test rows, and dev/d2w on dev rows, by which a search may choose."""
    return {name: _words(name, split, data) for name, split in (("d2w", "test"), ("dev/d2w", "dev"))}


def _words(name: str, split: str, data: DefsentData) -> WordTask:
    return WordTask(
        name=name,
        metrics=dict.fromkeys(metric_names(name), True),
        headline=f"{name}/mrr_at_{CUT}",
        benchmark=Benchmark(
            fingerprint=lambda: asked_fingerprint(data, split), load=lambda: questions(data, split)
        ),
        texts=_definitions,
        score=lambda asked, places: word_scores(name, asked, places),
        item_texts=_item_texts,
        source="DefSent, section 3.2 and table 2",
        reads=DEFINITIONS,
    )


def metric_names(task: str) -> tuple[str, ...]:
    """What `word_scores` yields for a task of this name, in its order."""
    return (f"{task}/mrr_at_{CUT}", f"{task}/mrr", *(f"{task}/top{k}" for k in TOPS), f"{task}/mrr_any")


def _item_texts(asked: Questions, metric: str) -> dict[str, str]:
    """Display texts of items: a word with its definition."""
    rows = asked.rows
    named = zip(_named(rows.ids), rows.words, rows.definitions, strict=True)
    return {name: f"{word}: {definition}" for name, word, definition in named}


def _named(ids: Iterable[str]) -> list[str]:
    """Where repeated definitions are kept, each is an item of its own."""
    return numbered(ids, mark="#")


def _definitions(asked: Questions) -> list[Definition]:
    """Every definition with each word that has it."""
    return [Definition(text, word) for text, words in asked.words_of.items() for word in words]


def word_scores(task: str, asked: Questions, places: Places) -> list[Score]:
    """Figures over all definitions whose word is in the vocabulary; each definition is an item.

    mrr_at_10 is what the paper's code calls MRR; mrr is uncut. mrr_any takes the best rank among all words that
    have the same definition, so that synonyms count as right. Definitions of one word are resampled together.
    Raises ValueError if the vocabulary has none of the words.
    """
    rows = asked.rows
    pairs = [Definition(text, word) for text, word in zip(rows.definitions, rows.words, strict=True)]
    of_word = np.asarray(places(pairs))[:, 0]
    known = np.flatnonzero(of_word > 0)
    if not len(known):
        raise ValueError(f"{task}: none of {len(pairs)} words is one entry of this vocabulary")
    sharing = _definitions(asked)
    best: dict[str, float] = defaultdict(lambda: np.inf)
    for (text, _), place in zip(sharing, np.asarray(places(sharing))[:, 0].tolist(), strict=True):
        if place > 0:
            best[text] = min(best[text], place)
    own = of_word[known]
    any_word = np.array([best[pairs[row].definition] for row in known])
    columns = [at_cut(own), reciprocal(own), *(hits(own, k) for k in TOPS), reciprocal(any_word)]
    ids, groups = (column.take(known) for column in (rows.ids, rows.keys))
    named = _named(ids)
    return [
        score_of_items(metric, "mean", named, groups, values)
        for metric, values in zip(metric_names(task), columns, strict=True)
    ]


def at_cut(places: np.ndarray, cut: int = CUT) -> np.ndarray:
    """1 / place up to `cut`, 0 beyond. (N,) -> (N,)."""
    return np.where(places <= cut, reciprocal(places), 0.0)
