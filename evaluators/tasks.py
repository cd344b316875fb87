"""What is measured: tasks as data, and `evaluate`, which encodes every text once and scores them all.

Source of the tasks below: Concept, sections 4.5 and 5, appendices G and H. A task whose data or scoring
changes gets a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corpora.records import ConceptCorpus, EvalSplit, reverse_gold
from evaluators import geometry, retrieval, stress
from evaluators.scores import Score
from evaluators.vectors import aligned_cosines

Encode = Callable[[Sequence[str]], np.ndarray]  # N texts -> (N, D) float32


@dataclass(frozen=True, kw_only=True)
class Task:
    """metrics: what `score` can yield, True where larger is better. headline: the one that decides.

    texts(corpus): everything `score` will want encoded. score(corpus, encode): the figures with their items.
    """

    name: str
    metrics: Mapping[str, bool]
    headline: str
    texts: Callable[[ConceptCorpus], Iterable[str]]
    score: Callable[[ConceptCorpus, Encode], list[Score]]
    source: str


def _t2d(name: str, split: str) -> Task:
    """Which definition belongs to this term? Queries are the split's terms, the pool all its definitions."""

    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        places = retrieval.cosine_ranks(encode(part.terms), encode(part.definitions), part.gold)
        owners = [part.concept_of_definition[definitions[0]][0] for definitions in part.gold]
        return retrieval.ranking_scores(name, places, part.terms, owners)

    return _ranking_task(name, split, score)


def _d2t(name: str, split: str) -> Task:
    """Which term does this definition define? Queries are the split's definitions, the pool all its terms."""

    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        places = retrieval.cosine_ranks(encode(part.definitions), encode(part.terms), reverse_gold(part))
        concepts = [concepts[0] for concepts in part.concept_of_definition]
        return retrieval.ranking_scores(name, places, concepts, concepts)

    return _ranking_task(name, split, score)


def _ranking_task(name: str, split: str, score: Callable[[ConceptCorpus, Encode], list[Score]]) -> Task:
    return Task(
        name=name,
        metrics=dict.fromkeys(retrieval.metric_names(name), True),
        headline=f"{name}/recall@10",
        texts=lambda corpus: (*corpus.splits[split].terms, *corpus.splits[split].definitions),
        score=score,
        source="Concept, section 4.5 and table 3",
    )


def _pair_auc(name: str, split: str) -> Task:
    def score(corpus: ConceptCorpus, encode: Encode) -> list[Score]:
        part = corpus.splits[split]
        return [stress.pair_auc(name, part, *_stress_cosines(part, encode))]

    return Task(
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


STRESS = Task(
    name="stress",
    metrics=dict.fromkeys(stress.metric_names(), True),
    headline="stress/negate/auc",
    texts=lambda corpus: _stress_texts(corpus.splits["id"]),
    score=_score_stress,
    source="Concept, appendix G",
)
GEOMETRY = Task(
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


def metric_names(names: Sequence[str]) -> dict[str, bool]:
    """Every metric these tasks can yield, True where larger is better.

    A kind of negative that the test concepts never show yields no figure. ValueError for an unknown task.
    """
    return {metric: larger for task in _named(names) for metric, larger in task.metrics.items()}


def evaluate(names: Sequence[str], corpus: ConceptCorpus, encode: Encode) -> list[Score]:
    """The scores of these tasks, every distinct text encoded once, in one call.

    ValueError for an unknown task, and, naming task and text, when the encoding of a text is not usable.
    """
    tasks = _named(names)
    wanted = {task.name: tuple(task.texts(corpus)) for task in tasks}
    row_of = {text: row for row, text in enumerate(dict.fromkeys(t for texts in wanted.values() for t in texts))}
    vectors = np.asarray(encode(list(row_of)), np.float32)  # (N, D)
    _check_vectors(vectors, row_of, wanted)

    def look_up(texts: Sequence[str]) -> np.ndarray:
        return vectors[[row_of[text] for text in texts]]

    return [score for task in tasks for score in task.score(corpus, look_up)]


def _named(names: Sequence[str]) -> list[Task]:
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise ValueError(f"no task {unknown[0]!r}; accepted: {', '.join(TASKS)}")
    return [TASKS[name] for name in dict.fromkeys(names)]


def _check_vectors(vectors: np.ndarray, row_of: Mapping[str, int], wanted: Mapping[str, Sequence[str]]) -> None:
    """ValueError unless there is one finite row with a direction for each text."""
    if vectors.ndim != 2 or len(vectors) != len(row_of):
        raise ValueError(
            f"{', '.join(wanted)}: {len(row_of)} texts, the first {next(iter(row_of), '')!r}, "
            f"were encoded as an array of shape {vectors.shape}; expected ({len(row_of)}, D)"
        )
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    for task, texts in wanted.items():
        for text in texts:
            if not usable[row_of[text]]:
                raise ValueError(f"{task}: the encoding of {text!r} is all zeros or not finite")
