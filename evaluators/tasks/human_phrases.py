"""Noun phrases that people wrote or judged, beside those that are made of templates.

What is resampled is the head: several items share one.
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

LEAST_PARAPHRASES = 5  # of a compound whose paraphrases are ranked by their votes


def tasks(path: str | None) -> Tasks:
    """Every task by name; path: a folder to look in first."""
    every: tuple[Task, ...] = (_entailment(path), _compounds(path), _compositionality(path))
    return {task.name: task for task in every}


def _entailment(path: str | None) -> Task[tuple[Entailment, ...], str]:
    """Is the cosine of premise and hypothesis larger where the one entails the other? Of all items, and by the
    kinds of the two modifiers; where the items of a kind are all alike there is no figure."""
    return Task(
        name="recursive_np",
        metrics=dict.fromkeys(("recursive_np/auc", *(f"recursive_np/{combo}/auc" for combo in COMBOS)), True),
        headline="recursive_np/auc",
        benchmark=small(partial(phrases.entailments, path=path)),
        texts=lambda items: [text for item in items for text in (item.premise, item.hypothesis)],
        score=_entailed,
        item_texts=lambda items, metric: {one.id: f"{one.premise} | {one.hypothesis}" for one in items},
        source="Lyu et al. 2022, RNPC, single-premise textual entailment",
    )


def _entailed(items: Sequence[Entailment], encode: EncodeTexts) -> list[Score]:
    cosines = aligned_cosines(encode([one.premise for one in items]), encode([one.hypothesis for one in items]))
    labels = np.array([one.entailed for one in items], float)
    combos = np.array([one.combo for one in items])
    scores = []
    for name, chosen in (("", np.full(len(items), True)), *((f"/{combo}", combos == combo) for combo in COMBOS)):
        if len(set(labels[chosen])) == 2:
            kept = [item for item, wanted in zip(items, chosen, strict=True) if wanted]
            ids, heads = [item.id for item in kept], [item.head for item in kept]
            metric = f"recursive_np{name}/auc"
            scores.append(score_of_items(metric, "auc", ids, heads, cosines[chosen], labels[chosen]))
    return scores


def _compounds(path: str | None) -> Task[tuple[Compound, ...], str]:
    """Do cosines rank a compound's paraphrases by how many people gave them?

    To find a compound's paraphrase among those of others says nothing: they hold its words, and a frozen encoder
    misses none of the 181.
    """
    return Task(
        name="noun_compounds",
        metrics={"noun_compounds/votes_spearman": True},
        headline="noun_compounds/votes_spearman",
        benchmark=small(partial(phrases.compounds, path=path)),
        texts=lambda items: [text for one in items for text in (one.text, *(said for said, _ in one.paraphrases))],
        score=_paraphrased,
        source="Hendrickx et al. 2013, SemEval task 4, test part; mean over compounds",
    )


def _paraphrased(items: Sequence[Compound], encode: EncodeTexts) -> list[Score]:
    """Of the compounds with paraphrases enough that differ in votes. Equal cosines follow nothing: 0."""
    names, heads, follows = [], [], []
    for one in items:
        votes = np.array([number for _, number in one.paraphrases], float)
        if len(votes) >= LEAST_PARAPHRASES and np.ptp(votes):
            said = encode([text for text, _ in one.paraphrases])
            cosines = aligned_cosines(np.broadcast_to(encode([one.text]), said.shape), said)
            names.append(one.text)
            heads.append(one.head)
            follows.append(np.nan_to_num(spearman(votes, cosines)))
    return [score_of_items("noun_compounds/votes_spearman", "mean", names, heads, np.array(follows))]


def _compositionality(path: str | None) -> Task[tuple[Rated, ...], str]:
    """Is a compound near to its words where people say that it is made up of them? `spearman`: near to their sum
    and rated as a whole; `modifier_…` and `head_…`: near to that word and rated for it."""
    parts = ("spearman", "modifier_spearman", "head_spearman")
    return Task(
        name="compositionality",
        metrics=dict.fromkeys((f"compositionality/{part}" for part in parts), True),
        headline="compositionality/spearman",
        benchmark=small(partial(phrases.compositionality, path=path)),
        texts=lambda items: [text for one in items for text in (one.text, one.modifier, one.head)],
        score=_literal,
        source="Reddy, McCarthy and Manandhar 2011; the sum of the words is their additive model",
    )


def _literal(items: Sequence[Rated], encode: EncodeTexts) -> list[Score]:
    whole, modifier, head = (
        unit(encode(texts).astype(np.float64))
        for texts in ([one.text for one in items], [one.modifier for one in items], [one.head for one in items])
    )
    measured = {
        "spearman": (modifier + head, [one.whole for one in items]),
        "modifier_spearman": (modifier, [one.by_modifier for one in items]),
        "head_spearman": (head, [one.by_head for one in items]),
    }
    names, heads = [one.text for one in items], [one.head for one in items]
    return [
        score_of_items(
            f"compositionality/{part}", "spearman", names, heads, aligned_cosines(whole, words), np.array(rated)
        )
        for part, (words, rated) in measured.items()
    ]
