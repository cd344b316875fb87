"""Noun phrases and their paraphrases: retrieval, and how well each kind of modifier composes.

Items are pairs, resampled by head: phrases are made from templates, so pairs of one head are not independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpora.concept.noun_phrases import FAMILIES, REGIMES, PhrasePair, fingerprint, load
from evaluators.metrics import retrieval
from evaluators.metrics.composition import distortion
from evaluators.metrics.item_metrics import hits, score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, EncodeTexts, Task

PhraseTask = Task[tuple[PhrasePair, ...], str]
PARTS = [
    *(f"np/{regime}" for regime in REGIMES),
    *(f"np/{regime}/{family}" for regime in REGIMES for family in FAMILIES),
]
JOINT = "np/joint"
EXTENSIONAL = ("intersective", "subsective")  # families whose phrases denote a subset of their head's things
GAP = "np/strict/extensional_gap"


def tasks(wordnet: str | None) -> dict[str, PhraseTask]:
    """Retrieval of paraphrases and distortion of composition, on pairs made from the WordNet at this path."""
    benchmark = Benchmark(fingerprint=lambda: fingerprint(wordnet), load=lambda: load(wordnet))
    return {task.name: task for task in (paraphrases(benchmark), distortions(benchmark))}


def paraphrases(benchmark: Benchmark[tuple[PhrasePair, ...]]) -> PhraseTask:
    """Retrieval of a phrase's paraphrases.

    Each regime has its own pool, and any paraphrase of the phrase's meaning is right, as templates give all
    modifiers of a class the same paraphrases. np/joint follows the paper: one pool, where only the listed
    paraphrase is right, and a phrase's strict paraphrase competes with its near one. np/strict/extensional_gap: by
    how much the two extensional families exceed the three others.
    """
    return PhraseTask(
        name="np",
        metrics=dict.fromkeys(
            (*(name for part in (*PARTS, JOINT) for name in retrieval.metric_names(part)), GAP), True
        ),
        headline="np/strict/recall@10",
        benchmark=benchmark,
        texts=lambda pairs: [text for pair in pairs for text in (pair.query, pair.paraphrase)],
        score=lambda pairs, encode: [*_by_regime(pairs, encode), *_joint(pairs, encode)],
        item_texts=_phrases,
        source="Concept, section 5.5 and table 5; the pairs are ours",
        version=2,  # 1 had no extensional_gap
    )


def _by_regime(pairs: Sequence[PhrasePair], encode: EncodeTexts) -> Iterator[Score]:
    for regime in REGIMES:
        asked = [pair for pair in pairs if pair.regime == regime]
        pool = list(dict.fromkeys(pair.paraphrase for pair in asked))
        place = {text: number for number, text in enumerate(pool)}
        places_of: dict[str, set[int]] = {}
        for pair in asked:
            places_of.setdefault(pair.meaning, set()).add(place[pair.paraphrase])
        gold = [sorted(places_of[pair.meaning]) for pair in asked]
        ranks, rivals = retrieval.cosine_ranks_and_rivals(
            encode([pair.query for pair in asked]), encode(pool), gold
        )
        taken = retrieval.named(rivals, pool)  # reported with the figures of all families together
        families = np.array([pair.family for pair in asked])
        for family in ("", *FAMILIES):  # "": all families together
            name = f"np/{regime}/{family}".rstrip("/")
            chosen = np.flatnonzero(families == family) if family else np.arange(len(asked))
            if len(chosen):
                listed = [asked[row] for row in chosen]
                queries, heads = [pair.query for pair in listed], [pair.head for pair in listed]
                yield from retrieval.ranking_scores(name, ranks[chosen], queries, heads, () if family else taken)
        if regime == "strict" and set(families) == set(FAMILIES):
            yield _extensional_gap(asked, families, hits(ranks, 1))


def _extensional_gap(pairs: Sequence[PhrasePair], families: np.ndarray, found: np.ndarray) -> Score:
    """Mean recall@1 of the extensional families minus that of the others, with equal weight of families.

    Items are weighted hits, whose mean is the figure. Source: Concept, P4 and table 5.
    """
    weight = np.empty(len(pairs))
    for family in FAMILIES:
        divisor = len(EXTENSIONAL) if family in EXTENSIONAL else len(EXTENSIONAL) - len(FAMILIES)
        chosen = families == family
        weight[chosen] = len(pairs) / (divisor * chosen.sum())
    queries, heads = [pair.query for pair in pairs], [pair.head for pair in pairs]
    return score_of_items(GAP, "mean", queries, heads, weight * found)


def _joint(pairs: Sequence[PhrasePair], encode: EncodeTexts) -> Iterator[Score]:
    pool = list(dict.fromkeys(pair.paraphrase for pair in pairs))
    place = {text: number for number, text in enumerate(pool)}
    gold = [[place[pair.paraphrase]] for pair in pairs]
    ranks, rivals = retrieval.cosine_ranks_and_rivals(encode([pair.query for pair in pairs]), encode(pool), gold)
    heads = [pair.head for pair in pairs]
    yield from retrieval.ranking_scores(JOINT, ranks, _joint_names(pairs), heads, retrieval.named(rivals, pool))


def _joint_names(pairs: Sequence[PhrasePair]) -> list[str]:
    return [f"{pair.query} ({pair.regime})" for pair in pairs]


def _phrases(pairs: Sequence[PhrasePair], metric: str) -> dict[str, str]:
    """Display texts of items: a phrase with its listed paraphrase."""
    regime = metric.split("/")[1]
    asked = [pair for pair in pairs if pair.regime == regime or metric.startswith(JOINT)]
    names = _joint_names(asked) if metric.startswith(JOINT) else [pair.query for pair in asked]
    return {name: f"{pair.query}: {pair.paraphrase}" for name, pair in zip(names, asked, strict=True)}


def distortions(benchmark: Benchmark[tuple[PhrasePair, ...]]) -> PhraseTask:
    """Distance of phrases from one fitted operator on modifier and head, for each family on its strict pairs."""
    return PhraseTask(
        name="distortion",
        metrics={f"distortion/{family}/mean": False for family in FAMILIES},
        headline="distortion/intersective/mean",
        benchmark=benchmark,
        texts=lambda pairs: [
            text for pair in _strict(pairs) for text in (pair.modifier, pair.head, pair.query, pair.paraphrase)
        ],
        score=_distortions,
        source="Concept, theorem D.1",
    )


def _distortions(pairs: Sequence[PhrasePair], encode: EncodeTexts) -> list[Score]:
    scores = []
    for family in FAMILIES:
        listed = [pair for pair in _strict(pairs) if pair.family == family]
        if not listed:
            continue
        heads = [pair.head for pair in listed]
        modifiers = [pair.modifier for pair in listed]
        phrases = [pair.query for pair in listed]
        wordings = [pair.paraphrase for pair in listed]
        found, residual = distortion(
            encode(modifiers), encode(heads), encode(phrases), encode(wordings), heads, modifiers
        )
        scores.append(
            score_of_items(f"distortion/{family}/mean", "mean", phrases, heads, residual, larger_is_better=False)
        )
        scores += [
            Score(metric=f"distortion/{family}/{name}", value=float(value), larger_is_better=name == "r2")
            for name, value in found.items()
            if name != "mean"
        ]
    return scores


def _strict(pairs: Sequence[PhrasePair]) -> list[PhrasePair]:
    return [pair for pair in pairs if pair.regime == "strict"]
