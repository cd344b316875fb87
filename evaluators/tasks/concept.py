"""What is measured of an encoder of concepts. Source: Concept, sections 4.5 and 5, appendices G and H."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from corpora.store.records import ConceptCorpus, EvalSplit, reverse_gold
from evaluators.metrics import geometry, retrieval, stress
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines
from evaluators.tasks.task import Task

Encode = Callable[[Sequence[str]], np.ndarray]  # N texts -> (N, D) float32
ConceptTask = Task[ConceptCorpus, str]


def _t2d(name: str, split: str) -> ConceptTask:
    """Which definition belongs to this term? Queries are the split's terms, the pool all its definitions."""

    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        places = retrieval.cosine_ranks(encode(part.terms), encode(part.definitions), part.gold)
        owners = [part.concept_of_definition[definitions[0]][0] for definitions in part.gold]
        return retrieval.ranking_scores(name, places, part.terms, owners)

    return _ranking_task(name, split, score)


def _d2t(name: str, split: str) -> ConceptTask:
    """Which term does this definition define? Queries are the split's definitions, the pool all its terms."""

    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        places = retrieval.cosine_ranks(encode(part.definitions), encode(part.terms), reverse_gold(part))
        concepts = [concepts[0] for concepts in part.concept_of_definition]
        return retrieval.ranking_scores(name, places, concepts, concepts)

    return _ranking_task(name, split, score)


def _ranking_task(name: str, split: str, score: Callable[[ConceptCorpus, Encode], list[Score]]) -> ConceptTask:
    return ConceptTask(
        name=name,
        metrics=dict.fromkeys(retrieval.metric_names(name), True),
        headline=f"{name}/recall@10",
        texts=lambda corpus: (*corpus.splits[split].terms, *corpus.splits[split].definitions),
        score=score,
        source="Concept, section 4.5 and table 3",
    )


def _pair_auc(name: str, split: str) -> ConceptTask:
    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        return [stress.pair_auc(name, part, *_stress_cosines(part, encode))]

    return ConceptTask(
        name=name,
        metrics={name: True},
        headline=name,
        texts=lambda corpus: _stress_texts(corpus.splits[split]),
        score=score,
        source="Concept, table 4 (pair ROC-AUC)",
    )


def _score_stress(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
    part = corpus.splits["id"]
    return stress.stress_scores(part, *_stress_cosines(part, encode))


def _score_geometry(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
    return geometry.geometry_scores(encode(_distinct_texts(corpus.splits["id"])))


def _stress_cosines(part: EvalSplit, encode: Encode) -> tuple[np.ndarray, np.ndarray]:
    """Cosine of each stress row's term with its definition, and with its negative. (N,), (N,)"""
    terms = encode([row.term for row in part.stress])
    right = aligned_cosines(terms, encode([row.definition for row in part.stress]))
    return right, aligned_cosines(terms, encode([row.negative for row in part.stress]))


def _stress_texts(part: EvalSplit) -> list[str]:
    return [text for row in part.stress for text in (row.term, row.definition, row.negative)]


def _distinct_texts(part: EvalSplit) -> list[str]:
    """The split's terms and definitions, each text once."""
    return list(dict.fromkeys((*part.terms, *part.definitions)))


STRESS = ConceptTask(
    name="stress",
    metrics=dict.fromkeys(stress.metric_names(), True),
    headline="stress/negate/auc",
    texts=lambda corpus: _stress_texts(corpus.splits["id"]),
    score=_score_stress,
    source="Concept, appendix G",
)
GEOMETRY = ConceptTask(
    name="geometry",
    metrics=geometry.METRICS,
    headline="geometry/anisotropy",
    texts=lambda corpus: _distinct_texts(corpus.splits["id"]),
    score=_score_geometry,
    source="Concept, appendix H",
)
TASKS = {
    task.name: task
    for task in (
        _t2d("t2d", "id"),
        _d2t("d2t", "id"),
        _t2d("hh/t2d", "hh"),
        _d2t("hh/d2t", "hh"),
        _t2d("dev/t2d", "dev"),
        _d2t("dev/d2t", "dev"),
        _pair_auc("pair_auc", "id"),
        _pair_auc("dev/pair_auc", "dev"),
        STRESS,
        GEOMETRY,
    )
}
