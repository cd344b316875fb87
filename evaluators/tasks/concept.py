"""The tasks for encoders of concepts. Source: Concept, sections 4.5 and 5, appendices G and H."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from corpora.concept.corpus import fingerprint, load
from corpora.concept.data import ConceptData
from corpora.concept.records import EvalSplit, reverse_gold
from corpora.store.cache import key_of
from evaluators.metrics import geometry, layers, retrieval, stress
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines
from evaluators.tasks import noun_phrases, ontology
from evaluators.tasks.task import MADE_UP_WIDTH, Benchmark, EncodeTexts, Task

SplitTask = Task[EvalSplit, str]
LAYERS = "layers"  # the reader for tasks on single layers: each text's token means of every layer, and the mixture
# The fields of `data:` that limit the size of a split, for its rankings and for its stress rows.
RANKED = {"id": ("test_concepts",), "dev": (), "hh": ()}
STRESSED = {"id": ("test_concepts", "stress_concepts"), "dev": ("stress_concepts",), "hh": ("stress_concepts",)}


def tasks(data: ConceptData) -> dict[str, Task[Any, str]]:
    """The family's tasks on the held-out concepts of this corpus, and on noun phrases; dev/... for searches."""
    corpus, training = cache(lambda: load(data)), cache(lambda: fingerprint(data))

    def held_out(split: str, fields: Sequence[str]) -> Benchmark[EvalSplit]:
        sizes = {field: getattr(data, field) for field in fields}
        if data.test_surfaces != "normalised":
            sizes["test_surfaces"] = data.test_surfaces
        return Benchmark(
            fingerprint=lambda: key_of({"corpus": training(), "split": split, **sizes}),
            load=lambda: corpus().splits[split],
        )

    held = tasks_on(
        ranked={split: held_out(split, fields) for split, fields in RANKED.items()},
        stressed={split: held_out(split, fields) for split, fields in STRESSED.items()},
    )
    return {**held, **noun_phrases.tasks(data.wordnet), **ontology.tasks(data.dbpedia, data.split_seed)}


def tasks_on(
    ranked: Mapping[str, Benchmark[EvalSplit]], stressed: Mapping[str, Benchmark[EvalSplit]]
) -> dict[str, SplitTask]:
    """The tasks on any splits "id", "dev" and "hh", given for rankings and for stress rows."""
    every = (
        _t2d("t2d", ranked["id"]),
        _d2t("d2t", ranked["id"]),
        _t2d("hh/t2d", ranked["hh"]),
        _d2t("hh/d2t", ranked["hh"]),
        _t2d("dev/t2d", ranked["dev"]),
        _d2t("dev/d2t", ranked["dev"]),
        _pair_auc("pair_auc", stressed["id"]),
        _pair_auc("hh/pair_auc", stressed["hh"]),
        _pair_auc("dev/pair_auc", stressed["dev"]),
        _stress("stress", stressed["id"]),
        _stress("hh/stress", stressed["hh"]),
        _stress("dev/stress", stressed["dev"]),
        _geometry(ranked["id"]),
        _profile(ranked["id"]),
        _readout(ranked["id"]),
    )
    return {task.name: task for task in every}


def _t2d(name: str, benchmark: Benchmark[EvalSplit]) -> SplitTask:
    """Which definition belongs to this term? Queries are the split's terms, the pool all its definitions."""

    def score(part: EvalSplit, encode: EncodeTexts) -> list[Score]:
        places, rivals = retrieval.cosine_ranks_and_rivals(encode(part.terms), encode(part.definitions), part.gold)
        taken = retrieval.named(rivals, _concepts(part))
        return retrieval.ranking_scores(name, places, part.terms, _owners(part), taken)

    return _ranking_task(name, benchmark, score)


def _d2t(name: str, benchmark: Benchmark[EvalSplit]) -> SplitTask:
    """Which term does this definition define? Queries are the split's definitions, the pool all its terms."""

    def score(part: EvalSplit, encode: EncodeTexts) -> list[Score]:
        places, rivals = retrieval.cosine_ranks_and_rivals(
            encode(part.definitions), encode(part.terms), reverse_gold(part)
        )
        concepts, taken = _concepts(part), retrieval.named(rivals, part.terms)
        return retrieval.ranking_scores(name, places, concepts, concepts, taken)

    return _ranking_task(name, benchmark, score)


def _ranking_task(
    name: str, benchmark: Benchmark[EvalSplit], score: Callable[[EvalSplit, EncodeTexts], list[Score]]
) -> SplitTask:
    return SplitTask(
        name=name,
        metrics=dict.fromkeys(retrieval.metric_names(name), True),
        headline=f"{name}/recall@10",
        benchmark=benchmark,
        texts=_ranked_texts,
        score=score,
        item_texts=_ranked_items,
        source="Concept, section 4.5 and table 3",
        version=2,  # 1 took equal cosines for unequal where a matrix product rounds them apart
    )


def _pair_auc(name: str, benchmark: Benchmark[EvalSplit]) -> SplitTask:
    return SplitTask(
        name=name,
        metrics={name: True},
        headline=name,
        benchmark=benchmark,
        texts=_stress_texts,
        score=lambda part, encode: [stress.pair_auc(name, part, *_stress_cosines(part, encode))],
        item_texts=_stress_items,
        counted="concepts",
        source="Concept, table 4 (pair ROC-AUC)",
    )


def _stress(name: str, benchmark: Benchmark[EvalSplit]) -> SplitTask:
    return SplitTask(
        name=name,
        metrics=dict.fromkeys(stress.metric_names(name), True),
        headline=f"{name}/negate/auc",
        benchmark=benchmark,
        texts=_stress_texts,
        score=lambda part, encode: stress.stress_scores(part, *_stress_cosines(part, encode), name),
        item_texts=_stress_items,
        counted="concepts",
        source="Concept, appendix G",
    )


def made_up_layers(draws: np.random.Generator, texts: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random answers of the reader LAYERS: for each text vectors of three layers and a mixture, (K, D), (K,)."""
    return [(draws.standard_normal((3, MADE_UP_WIDTH)), np.full(3, 1 / 3)) for _ in texts]


def _geometry(benchmark: Benchmark[EvalSplit]) -> SplitTask:
    return SplitTask(
        name="geometry",
        metrics=geometry.METRICS,
        own_unit=True,
        headline="geometry/anisotropy",
        benchmark=benchmark,
        texts=_ranked_texts,
        score=lambda part, encode: geometry.geometry_scores(encode(_ranked_texts(part))),
        source="Concept, appendix H",
    )


def _profile(benchmark: Benchmark[EvalSplit]) -> SplitTask:
    """Which layer holds the concept? The ranking of t2d and the shape of the space, layer by layer."""
    return SplitTask(
        name="layers",
        metrics=layers.PROFILE,
        headline="layers/last_gain",
        benchmark=benchmark,
        texts=_ranked_texts,
        score=_profile_scores,
        source="Concept, figure 3",
        reads=LAYERS,
        made_up=made_up_layers,
    )


def _profile_scores(part: EvalSplit, read: Callable[[Sequence[str]], Any]) -> list[Score]:
    terms, definitions = _means(read(part.terms)), _means(read(part.definitions))
    texts = _means(read(_ranked_texts(part)))
    return layers.profile_scores(terms, definitions, texts, part.gold, part.terms, _owners(part))


def _readout(benchmark: Benchmark[EvalSplit]) -> SplitTask:
    """How much does the readout take of each layer, and how far from the last layer does that put a text?

    A readout that mixes no token means, such as the first token, has no figure.
    """
    return SplitTask(
        name="readout",
        metrics=layers.READOUT,
        headline="readout/shift",
        benchmark=benchmark,
        texts=_ranked_texts,
        score=_readout_scores,
        source="Concept, section 4.2, and the theorem on readout invariance",
        reads=LAYERS,
        made_up=made_up_layers,
    )


def _readout_scores(part: EvalSplit, read: Callable[[Sequence[str]], Any]) -> list[Score]:
    readings = read(_ranked_texts(part))
    taken = [weights for _, weights in readings if weights is not None]
    return layers.readout_scores(_means(readings), np.stack(taken)) if taken else []


def _means(readings: Sequence[layers.Reading]) -> np.ndarray:
    """(N, L + 1, D)."""
    return np.stack([means for means, _ in readings])


def _concepts(part: EvalSplit) -> list[str]:
    """The first concept of each definition."""
    return [concepts[0] for concepts in part.concept_of_definition]


def _owners(part: EvalSplit) -> list[str]:
    """The concept of the first correct definition of each term."""
    concepts = _concepts(part)
    return [concepts[first] for first, *_ in part.gold]


def _stress_cosines(part: EvalSplit, encode: EncodeTexts) -> tuple[np.ndarray, np.ndarray]:
    """Cosine of each stress row's term with its definition, and with its negative. (N,), (N,)"""
    terms = encode([row.term for row in part.stress])
    right = aligned_cosines(terms, encode([row.definition for row in part.stress]))
    return right, aligned_cosines(terms, encode([row.negative for row in part.stress]))


def _stress_texts(part: EvalSplit) -> list[str]:
    return [text for row in part.stress for text in (row.term, row.definition, row.negative)]


def _ranked_texts(part: EvalSplit) -> list[str]:
    """The split's terms and definitions, each text once."""
    return list(dict.fromkeys((*part.terms, *part.definitions)))


def _ranked_items(part: EvalSplit, metric: str) -> dict[str, str]:
    """The text of each item, a term with its definition. Items are named by terms in t2d, by concepts in d2t."""
    texts: dict[str, str] = {}
    for term, (first, *_) in zip(part.terms, part.gold, strict=True):
        texts[term] = f"{term}: {part.definitions[first]}"
        texts.setdefault(part.concept_of_definition[first][0], texts[term])
    for (concept, *_), definition in zip(part.concept_of_definition, part.definitions, strict=True):
        texts.setdefault(concept, definition)  # definitions that are no term's first can still be mistaken for one
    return texts


def _stress_items(part: EvalSplit, metric: str) -> dict[str, str]:
    """The text of each item: a term with its definition, or with the wrong text made from it."""
    texts: dict[str, str] = {}
    for row in part.stress:
        right, wrong = f"{row.term}: {row.definition}", f"{row.term}, taken for: {row.negative}"
        texts |= {f"{row.concept}+": right, f"{row.concept}-{row.rule}": wrong}
        if f"/{row.rule}/" in metric:
            texts |= {f"{row.concept}-": wrong, row.concept: f"{right} (not: {row.negative})"}
    return texts
