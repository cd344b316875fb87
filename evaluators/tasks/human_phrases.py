"""Noun phrases that people wrote or judged, in addition to those made from templates.

Items are resampled by their heads, which several items share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from corpora.benchmarks import phrases
from corpora.benchmarks.phrases import COMBOS, Compound, Entailment, Rated
from evaluators.metrics.item_metrics import score_of_items, spearman
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines, unit
from evaluators.tasks.task import EncodeTexts, Task, Tasks, small

LEAST_PARAPHRASES = 5  # fewest paraphrases of a scored compound


def tasks(path: str | None) -> Tasks:
    """Every task by name; path: a folder to look in first."""
    every: tuple[Task, ...] = (_entailment(path), _compounds(path), _compositionality(path))
    return {task.name: task for task in every}


def _entailment(path: str | None) -> Task[tuple[Entailment, ...], str]:
    """Is the cosine of premise and hypothesis larger if the first entails the second? Over all items, and by the
    kinds of the two modifiers; a kind whose items all have one label has no figure."""
    return Task(
        name="recursive_np",
        metrics=dict.fromkeys(("recursive_np/auc", *(f"recursive_np/{combo}/auc" for combo in COMBOS)), True),
        headline="recursive_np/auc",
        benchmark=small(partial(phrases.entailments, path=path)),
        texts=lambda items: [text for item in items for text in (item.premise, item.hypothesis)],
        score=_entailed,
        item_texts=lambda items, metric: {item.id: f"{item.premise} | {item.hypothesis}" for item in items},
        source="Lyu et al. 2022, RNPC, single-premise textual entailment",
    )


def _entailed(items: Sequence[Entailment], encode: EncodeTexts) -> list[Score]:
    premises, hypotheses = [item.premise for item in items], [item.hypothesis for item in items]
    cosines = aligned_cosines(encode(premises), encode(hypotheses))
    labels = np.array([item.entailed for item in items], float)
    combos = np.array([item.combo for item in items])
    scores = []
    for name, chosen in (("", np.full(len(items), True)), *((f"/{combo}", combos == combo) for combo in COMBOS)):
        if len(set(labels[chosen])) == 2:
            kept = [item for item, wanted in zip(items, chosen, strict=True) if wanted]
            ids, heads = [item.id for item in kept], [item.head for item in kept]
            metric = f"recursive_np{name}/auc"
            scores.append(score_of_items(metric, "auc", ids, heads, cosines[chosen], labels[chosen]))
    return scores


def _compounds(path: str | None) -> Task[tuple[Compound, ...], str]:
    """Do cosines rank a compound's paraphrases by the number of people who gave them?

    Retrieval of a compound's paraphrases is too easy: they contain its words, and a frozen encoder misses none of
    the 181 compounds.
    """
    return Task(
        name="noun_compounds",
        metrics={"noun_compounds/votes_spearman": True},
        headline="noun_compounds/votes_spearman",
        benchmark=small(partial(phrases.compounds, path=path)),
        texts=lambda items: [
            text for item in items for text in (item.text, *(phrase for phrase, _ in item.paraphrases))
        ],
        score=_paraphrased,
        source="Hendrickx et al. 2013, SemEval task 4, test part; mean over compounds",
    )


def _paraphrased(items: Sequence[Compound], encode: EncodeTexts) -> list[Score]:
    """Mean Spearman over compounds with at least LEAST_PARAPHRASES and unequal votes; equal cosines count as 0."""
    names, heads, correlations = [], [], []
    for item in items:
        votes = np.array([number for _, number in item.paraphrases], float)
        if len(votes) >= LEAST_PARAPHRASES and np.ptp(votes):
            paraphrases = encode([text for text, _ in item.paraphrases])
            cosines = aligned_cosines(np.broadcast_to(encode([item.text]), paraphrases.shape), paraphrases)
            names.append(item.text)
            heads.append(item.head)
            correlations.append(np.nan_to_num(spearman(votes, cosines)))
    return [score_of_items("noun_compounds/votes_spearman", "mean", names, heads, np.array(correlations))]


def _compositionality(path: str | None) -> Task[tuple[Rated, ...], str]:
    """Does the cosine of a compound and its words follow people's ratings of its compositionality? `spearman`: of
    the sum of both words; `modifier_…` and `head_…`: of that word, by the rating of that word."""
    parts = ("spearman", "modifier_spearman", "head_spearman")
    return Task(
        name="compositionality",
        metrics=dict.fromkeys((f"compositionality/{part}" for part in parts), True),
        headline="compositionality/spearman",
        benchmark=small(partial(phrases.compositionality, path=path)),
        texts=lambda items: [text for item in items for text in (item.text, item.modifier, item.head)],
        score=_literal,
        source="Reddy, McCarthy and Manandhar 2011; the sum of the words is their additive model",
    )


def _literal(items: Sequence[Rated], encode: EncodeTexts) -> list[Score]:
    whole, modifier, head = (
        unit(encode(texts).astype(np.float64))
        for texts in (
            [item.text for item in items],
            [item.modifier for item in items],
            [item.head for item in items],
        )
    )
    measured = {
        "spearman": (modifier + head, [item.whole for item in items]),
        "modifier_spearman": (modifier, [item.by_modifier for item in items]),
        "head_spearman": (head, [item.by_head for item in items]),
    }
    names, heads = [item.text for item in items], [item.head for item in items]
    return [
        score_of_items(
            f"compositionality/{part}", "spearman", names, heads, aligned_cosines(whole, words), np.array(rated)
        )
        for part, (words, rated) in measured.items()
    ]
