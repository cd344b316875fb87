"""Published sets of words in their sentences: change of meaning, similarity in context, the same sense or another.

table = tasks("data")        # {"lscd/en": Task, "cosimlex/en": Task, "wic": Task, ...}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from corpora.benchmarks import cosimlex, dwug, wic, wic_tsv
from corpora.benchmarks.records import ChangeTarget, SimilarityPair, WicPair
from corpora.sources.occurrences import Occurrence
from evaluators.metrics import contextual_similarity, semantic_change
from evaluators.metrics.concept_differentiation import best_threshold, is_below
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines, cosine_distances
from evaluators.tasks.named_items import marked
from evaluators.tasks.task import Task, Tasks, small

EncodeOccurrences = Callable[[Sequence[Occurrence]], np.ndarray]  # N occurrences -> (N, D) float32, of any length
Splits = Mapping[str, tuple[WicPair, ...]]
OCCURRENCES = "occurrences"  # what the encoders of these tasks read


def tasks(path: str | None) -> Tasks:
    """Every task by name; path: a folder to look in first."""
    every: tuple[Task, ...] = (
        *(_change(language, path) for language in dwug.LANGUAGES),
        *(_similarity(language, path) for language in cosimlex.LANGUAGES),
        _same_sense("wic", partial(wic.read, path=path), "test", "Pilehvar and Camacho-Collados 2019"),
        # The word in its sentence beside the same word before a definition.
        _same_sense(
            "wic_tsv", partial(wic_tsv.read, path=path), "dev", "Breit et al. 2021; its test has no labels"
        ),
    )
    return {task.name: task for task in every}


def _change(language: str, path: str | None) -> Task[tuple[ChangeTarget, ...], Occurrence]:
    name = f"lscd/{language}"

    def score(targets: Sequence[ChangeTarget], encode: EncodeOccurrences) -> list[Score]:
        uses = [(encode(target.first), encode(target.second)) for target in targets]
        gold = np.array([target.change for target in targets])
        return semantic_change.change_scores(name, [target.lemma for target in targets], uses, gold)

    return Task(
        name=name,
        metrics=semantic_change.metric_names(name),
        headline=f"{name}/apd_spearman",
        benchmark=small(lambda: dwug.read(language, path=path)),
        texts=lambda targets: [use for target in targets for use in (*target.first, *target.second)],
        score=score,
        source="CALE, tables 2 and 10; DWUG",
        reads=OCCURRENCES,
    )


def _similarity(language: str, path: str | None) -> Task[tuple[SimilarityPair, ...], Occurrence]:
    name = f"cosimlex/{language}"

    def score(pairs: Sequence[SimilarityPair], encode: EncodeOccurrences) -> list[Score]:
        contexts = [context for pair in pairs for context in (pair.context1, pair.context2)]
        sides = [encode([context[side] for context in contexts]) for side in (0, 1)]
        return contextual_similarity.context_scores(
            name,
            [f"{number}: {pair.word1}, {pair.word2}" for number, pair in enumerate(pairs, start=1)],
            np.array([(pair.sim1, pair.sim2) for pair in pairs]),
            aligned_cosines(*sides).reshape(-1, 2),
        )

    return Task(
        name=name,
        metrics=contextual_similarity.metric_names(name),
        headline=f"{name}/st1_pearson",
        benchmark=small(lambda: cosimlex.read(language, path=path)),
        texts=lambda pairs: [
            word for pair in pairs for context in (pair.context1, pair.context2) for word in context
        ],
        score=score,
        source="CALE, table 4; CoSimLex",
        reads=OCCURRENCES,
    )


def _same_sense(name: str, read: Callable[[], Splits], scored: str, source: str) -> Task[Splits, Occurrence]:
    """scored: the split on which accuracy and AUC are measured."""
    return Task(
        name=name,
        metrics={f"{name}/accuracy": True, f"{name}/auc": True},
        headline=f"{name}/accuracy",
        benchmark=small(read),
        texts=lambda splits: [
            side for pairs in splits.values() for pair in pairs for side in (pair.first, pair.second)
        ],
        score=partial(_score_same_sense, name, scored),
        item_texts=lambda splits, metric: {
            pair.id: f"{marked(pair.first)} | {marked(pair.second)}" for pair in splits[scored]
        },
        source=source,
        reads=OCCURRENCES,
        counted="words",
        version=2,  # 1 had no AUC
    )


def _score_same_sense(name: str, scored: str, splits: Splits, encode: EncodeOccurrences) -> list[Score]:
    """Accuracy on the split `scored`, by the best threshold for all other splits; and ROC-AUC."""

    def distances(pairs: Sequence[WicPair]) -> np.ndarray:
        vectors = encode([side for pair in pairs for side in (pair.first, pair.second)])
        rows = np.arange(len(vectors))
        return cosine_distances(vectors, rows[::2], rows[1::2])

    def same(pairs: Sequence[WicPair]) -> np.ndarray:
        return np.array([pair.same for pair in pairs])

    known = [pair for split, pairs in splits.items() if split != scored for pair in pairs]
    test = splits[scored]
    threshold = best_threshold(distances(known), same(known))
    tested = distances(test)
    right = is_below(tested, threshold) == same(test)
    ids, words = [pair.id for pair in test], [pair.first.lemma for pair in test]
    return [
        score_of_items(f"{name}/accuracy", "mean", ids, words, right),
        score_of_items(f"{name}/auc", "auc", ids, words, -tested, same(test)),
        Score(metric=f"{name}/threshold", value=threshold),
    ]
