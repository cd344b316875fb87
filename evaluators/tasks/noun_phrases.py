"""Noun phrases and their paraphrases: which are found, and how well each kind of modifier composes.

Items are pairs and what is resampled is the head: the phrases are made of templates, so pairs of one head are no
independent evidence.
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
EXTENSIONAL = ("intersective", "subsective")  # families whose phrases are some of what their heads are
GAP = "np/strict/extensional_gap"


def tasks(wordnet: str | None) -> dict[str, PhraseTask]:
    """Finding paraphrases, and the distortion of composition, on pairs made of the WordNet at this place."""
    benchmark = Benchmark(fingerprint=lambda: fingerprint(wordnet), load=lambda: load(wordnet))
    return {task.name: task for task in (paraphrases(benchmark), distortions(benchmark))}


def paraphrases(benchmark: Benchmark[tuple[PhrasePair, ...]]) -> PhraseTask:
    """Which paraphrase belongs to this phrase?

    Each regime has a pool of its own, and any paraphrase of the phrase's meaning is right: templates say the same
    of every modifier of a class. np/joint is as the paper has it: one pool, and only the listed paraphrase
    counts. A phrase has a strict and a near paraphrase there, and the strict one stands above the near one.
    np/strict/extensional_gap is what the two extensional families are better at than the three others.
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
        saying: dict[str, set[int]] = {}
        for pair in asked:
            saying.setdefault(pair.meaning, set()).add(place[pair.paraphrase])
        gold = [sorted(saying[pair.meaning]) for pair in asked]
        ranks, rivals = retrieval.cosine_ranks_and_rivals(
            encode([pair.query for pair in asked]), encode(pool), gold
        )
        taken = retrieval.named(rivals, pool)  # told once for all families of a regime
        families = np.array([pair.family for pair in asked])
        for family in ("", *FAMILIES):  # of all together first
            name = f"np/{regime}/{family}".rstrip("/")
            chosen = np.flatnonzero(families == family) if family else np.arange(len(asked))
            if len(chosen):
                listed = [asked[row] for row in chosen]
                queries, heads = [pair.query for pair in listed], [pair.head for pair in listed]
                yield from retrieval.ranking_scores(name, ranks[chosen], queries, heads, () if family else taken)
        if regime == "strict" and set(families) == set(FAMILIES):
            yield _extensional_gap(asked, families, hits(ranks, 1))


def _extensional_gap(pairs: Sequence[PhrasePair], families: np.ndarray, found: np.ndarray) -> Score:
    """Mean recall@1 of the extensional families less that of the others, each family counting alike.

    A pair's item is its share in that: the mean of the items is the figure. Source: Concept, P4 and table 5.
    """
    weight = np.empty(len(pairs))
    for family in FAMILIES:
        alike = len(EXTENSIONAL) if family in EXTENSIONAL else len(EXTENSIONAL) - len(FAMILIES)
        chosen = families == family
        weight[chosen] = len(pairs) / (alike * chosen.sum())
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
    """A phrase with the paraphrase that is listed for it."""
    regime = metric.split("/")[1]
    asked = [pair for pair in pairs if pair.regime == regime or metric.startswith(JOINT)]
    names = _joint_names(asked) if metric.startswith(JOINT) else [pair.query for pair in asked]
    return {name: f"{pair.query}: {pair.paraphrase}" for name, pair in zip(names, asked, strict=True)}


def distortions(benchmark: Benchmark[tuple[PhrasePair, ...]]) -> PhraseTask:
    """How far are phrases from what one operator makes of modifier and head? For each family, on its strict
    pairs."""
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
        said = [pair.paraphrase for pair in listed]
        found, residual = distortion(
            encode(modifiers), encode(heads), encode(phrases), encode(said), heads, modifiers
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
