"""Weak points of sentence encoders: same words with another meaning, negation, senses, a crowded space.

table = tasks("data")        # {"paws": Task, "semantoneg": Task, "negation": Task, "suppression/STS12": Task, ...}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from corpora.benchmarks import negation, paws, sts, wic
from corpora.benchmarks.negation import Contrast
from corpora.benchmarks.pairs import Pairs, joined
from corpora.benchmarks.sts import Subsets
from evaluators.metrics import alignment, geometry
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.pair_decisions import decision_scores, ranking_scores
from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import aligned_cosines
from evaluators.tasks import suppression
from evaluators.tasks.named_items import pair_items, subset_item_texts
from evaluators.tasks.sts import SubsetTask, pair_cosines, pair_texts, subsets_at_hand
from evaluators.tasks.task import Benchmark, EncodeTexts, Task, small

NEGATED_AT_MOST = 600  # pairs of each set of negations, evenly spaced, as the larger sets are repetitive
ALIKE = 4.0  # STS-B pairs with gold above this are positives of alignment, as in SimCSE


def tasks(path: str | None) -> dict[str, Task]:
    """Every robustness task by name; path: a folder to look in before $SEMRAY_DATA."""
    named: Iterable[Task] = (
        _paws("paws", "test", path),
        _paws("dev/paws", "dev", path),
        _paws_accuracy(path),
        _semantoneg(path),
        _negation(path),
        _wic(path),
        *suppression.tasks(path),
        _geometry(path),
    )
    return {task.name: task for task in named}


def _paws(name: str, split: str, path: str | None) -> SubsetTask:
    def score(parts: Subsets, encode: EncodeTexts) -> list[Score]:
        pairs = parts[split]
        return ranking_scores(name, pair_items(pairs), pair_cosines(pairs, encode), pairs.gold)

    return SubsetTask(
        name=name,
        metrics={f"{name}/auc": True, f"{name}/ap": True},
        headline=f"{name}/auc",
        benchmark=_paws_splits((split,), path),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=score,
        source="Zhang et al., NAACL 2019; PAWS-Wiki, labelled (final)",
        version=2,  # 1 named texts without the marks on their letters
    )


def _paws_accuracy(path: str | None) -> SubsetTask:
    """A separate task, as its threshold needs the dev part encoded too, which doubles the cost."""
    return SubsetTask(
        name="paws/accuracy",
        metrics={"paws/accuracy": True},
        headline="paws/accuracy",
        benchmark=_paws_splits(("dev", "test"), path),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=_paws_accuracy_scores,
        source="Zhang et al., NAACL 2019; the threshold is the best on dev",
        version=2,  # 1 named texts without the marks on their letters
    )


def _paws_accuracy_scores(parts: Subsets, encode: EncodeTexts) -> list[Score]:
    dev, test = parts["dev"], parts["test"]
    known = (pair_cosines(dev, encode), dev.gold)
    return decision_scores("paws", pair_items(test), pair_cosines(test, encode), test.gold, known)


def _paws_splits(splits: tuple[str, ...], path: str | None) -> Benchmark[Subsets]:
    return subsets_at_hand(lambda: {split: paws.read(split, path=path) for split in splits})


def _semantoneg(path: str | None) -> Task[tuple[Contrast, ...], str]:
    return Task(
        name="semantoneg",
        metrics={"semantoneg/accuracy": True, "semantoneg/auc": True},
        headline="semantoneg/accuracy",
        benchmark=small(partial(negation.semantoneg, path=path)),
        texts=lambda contrasts: [
            text for contrast in contrasts for text in (contrast.input, *contrast.candidates)
        ],
        score=_semantoneg_scores,
        item_texts=_texts_of_contrasts,
        source="Vahtola et al. 2022",
        counted="sentences",
    )


def _semantoneg_scores(contrasts: tuple[Contrast, ...], encode: EncodeTexts) -> list[Score]:
    """accuracy: share of inputs whose paraphrase scores strictly above both others. auc: over all inputs."""
    sides = [(contrast.input, text) for contrast in contrasts for text in contrast.candidates]
    cosines = aligned_cosines(encode([a for a, _ in sides]), encode([b for _, b in sides]))
    starts = np.cumsum([0, *(len(contrast.candidates) for contrast in contrasts)])
    right, label, taken = [], np.zeros(len(sides)), []
    for contrast, start, end in zip(contrasts, starts[:-1], starts[1:], strict=True):
        paraphrase = start + contrast.paraphrase
        label[paraphrase] = 1.0
        others = np.where(np.arange(start, end) == paraphrase, -np.inf, cosines[start:end])
        right.append(cosines[paraphrase] > others.max())
        taken.append("" if right[-1] else f"{contrast.id}:{others.argmax()}")
    inputs = [contrast.input for contrast in contrasts]
    ids = [f"{contrast.id}:{place}" for contrast in contrasts for place in range(len(contrast.candidates))]
    groups = [contrast.input for contrast in contrasts for _ in contrast.candidates]
    accuracy = score_of_items(
        "semantoneg/accuracy", "mean", [contrast.id for contrast in contrasts], inputs, np.array(right)
    )
    return [
        replace(accuracy, taken_for=taken),
        score_of_items("semantoneg/auc", "auc", ids, groups, cosines, label),
    ]


def _texts_of_contrasts(contrasts: tuple[Contrast, ...], metric: str) -> dict[str, str]:
    """Display texts. accuracy: input with paraphrase, and candidates alone. auc: input with each candidate."""
    by_input = metric.endswith("/accuracy")
    texts = {
        contrast.id: f"{contrast.input} | {contrast.candidates[contrast.paraphrase]}" for contrast in contrasts
    }
    for contrast in contrasts:
        for place, text in enumerate(contrast.candidates):
            texts[f"{contrast.id}:{place}"] = text if by_input else f"{contrast.input} | {text}"
    return texts


def _negation(path: str | None) -> SubsetTask:
    """Cosine of a sentence and its negation. It is high in any narrow cone of vectors: see `geometry/STS-B`."""

    def read() -> Subsets:
        sets = negation.negated_pairs(path=path)
        return {name: pairs.take(_evenly(len(pairs), NEGATED_AT_MOST)) for name, pairs in sets.items()}

    return SubsetTask(
        name="negation",
        metrics={"negation/cosine": False} | {f"negation/{name}/cosine": False for name in negation.FILES},
        headline="negation/cosine",
        benchmark=subsets_at_hand(read),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=_negation_scores,
        source="CANNOT, Anschuetz et al. 2023",
    )


def _negation_scores(sets: Subsets, encode: EncodeTexts) -> list[Score]:
    parts = {**{f"negation/{name}": pairs for name, pairs in sets.items()}, "negation": joined(sets.values())}
    return [
        score_of_items(
            f"{place}/cosine", "mean", *pair_items(pairs), pair_cosines(pairs, encode), larger_is_better=False
        )
        for place, pairs in parts.items()
    ]


def _evenly(rows: int, at_most: int) -> list[int]:
    """At most `at_most` indices, evenly spaced over 0 ... rows - 1."""
    return np.linspace(0, rows - 1, min(rows, at_most)).round().astype(int).tolist()


def _wic(path: str | None) -> SubsetTask:
    """WiC by vectors of whole sentences, without marking the word."""

    def read() -> Subsets:
        parts = wic.read(path=path)

        def pairs(split: str) -> Pairs:
            return Pairs.of(
                (pair.id, pair.first.text, pair.second.text, float(pair.same)) for pair in parts[split]
            )

        return {split: pairs(split) for split in ("train", "test")}

    return SubsetTask(
        name="wic/sentence",
        metrics={"wic/sentence/accuracy": True, "wic/sentence/auc": True},
        headline="wic/sentence/accuracy",
        benchmark=subsets_at_hand(read),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=_wic_scores,
        source="Pilehvar and Camacho-Collados 2019; the threshold is the best on train",
    )


def _wic_scores(parts: Subsets, encode: EncodeTexts) -> list[Score]:
    train, test = parts["train"], parts["test"]
    cosines, items = pair_cosines(test, encode), pair_items(test)
    known = (pair_cosines(train, encode), train.gold)
    auc = score_of_items("wic/sentence/auc", "auc", items.ids, items.groups, cosines, test.gold)
    return [*decision_scores("wic/sentence", items, cosines, test.gold, known), auc]


def _geometry(path: str | None) -> SubsetTask:
    name = "geometry/STS-B"

    def score(subsets: Subsets, encode: EncodeTexts) -> list[Score]:
        pairs = joined(subsets.values())
        like = pairs.take(np.flatnonzero(pairs.gold > ALIKE).tolist())
        vectors = encode(list(dict.fromkeys(pair_texts(subsets))))
        distances = alignment.squared_distances(pair_cosines(like, encode))
        figures = {"uniformity": alignment.uniformity(vectors), **geometry.figures(vectors)}
        return [
            score_of_items(f"{name}/alignment", "mean", *pair_items(like), distances, larger_is_better=False),
            *(
                Score(metric=f"{name}/{figure}", value=value, larger_is_better=figure == "effective_rank")
                for figure, value in figures.items()
            ),
        ]

    return SubsetTask(
        name=name,
        own_unit=True,
        metrics={
            f"{name}/alignment": False,
            f"{name}/uniformity": False,
            f"{name}/anisotropy": False,
            f"{name}/effective_rank": True,
        },
        headline=f"{name}/uniformity",
        benchmark=subsets_at_hand(partial(sts.read, "STS-B", path=path)),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=score,
        source="Wang and Isola 2020, on STS-B as in SimCSE; Concept, appendix H",
    )
