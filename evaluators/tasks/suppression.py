"""Feature suppression: does cosine follow the words that two sentences share, or what they mean?

tasks("data")        # suppression over all seven STS sets, suppression/STS12 …, and the paper's own six pairs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpora.benchmarks import sts
from corpora.benchmarks.pairs import Pairs, joined
from corpora.benchmarks.sts import Subsets
from corpora.store.errors import CorpusError
from evaluators.metrics import geometry, suppression
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.named_items import pair_items, subset_item_texts
from evaluators.tasks.sts import SETS, SubsetTask, pair_cosines, pair_texts, subsets_at_hand
from evaluators.tasks.task import EncodeTexts

# The pairs of SAN, table 11, all similar in meaning: our name of the pair -> its set, and its key there.
TABLE_11 = {
    "adventure": ("STS12", "a301ecab007d397b"),
    "motocross": ("SICK-R/all", "448eb44da8a0ce7f"),
    "bulbs": ("STS15", "35ccd5b2588fb7da"),
    "union": ("STS12", "c817bf38c1958493"),
    "talks": ("STS14", "271bcf7c698db852"),
    "broccoli": ("SICK-R/all", "466786e8db3089db"),
}


def tasks(path: str | None) -> Iterator[SubsetTask]:
    """Every task; path: a folder to look in before $SEMRAY_DATA."""
    yield _slices("suppression", SETS, path)
    for name in SETS:
        yield _slices(f"suppression/{name}", (name,), path)
    yield _table_11(path)


def _slices(name: str, sets: Sequence[str], path: str | None) -> SubsetTask:
    def read() -> Subsets:
        parts = {source: sts.read(source, path=path) for source in sets}
        return {f"{key}/{subset}": pairs for key, subsets in parts.items() for subset, pairs in subsets.items()}

    def score(subsets: Subsets, encode: EncodeTexts) -> list[Score]:
        pairs = joined(subsets.values())
        items, cosines = pair_items(pairs), pair_cosines(pairs, encode)
        vectors = encode(list(dict.fromkeys(pair_texts(subsets))))
        random = geometry.random_cosines(vectors, np.random.default_rng(geometry.SEED))
        scores = []
        for measure, overlap in suppression.OVERLAPS.items():
            overlaps = np.array([overlap(a, b) for a, b in zip(pairs.a, pairs.b, strict=True)])
            place = suppression.place_of(name, measure)
            scores += suppression.suppression_scores(place, items, cosines, pairs.gold, overlaps, random)
        return scores

    return SubsetTask(
        name=name,
        metrics=suppression.metric_names(name),
        headline=f"{name}/partial",
        benchmark=subsets_at_hand(read),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=score,
        source="SAN, figure 4; slices and partial correlation as documented",
        version=2,  # 1 had no slices by Dice, and no items of the standard deviations
    )


def _table_11(path: str | None) -> SubsetTask:
    """The paper's six illustrative pairs, each with a figure; too few for a verdict on an encoder."""
    name = "suppression/table11"

    def score(pairs_of: Subsets, encode: EncodeTexts) -> list[Score]:
        cosines = {pair: pair_cosines(rows, encode) for pair, rows in pairs_of.items()}
        items = pair_items(joined(pairs_of.values()))
        mean = score_of_items(f"{name}/mean", "mean", *items, np.concatenate(list(cosines.values())))
        return [mean, *(Score(metric=f"{name}/{pair}", value=float(value[0])) for pair, value in cosines.items())]

    return SubsetTask(
        name=name,
        metrics=dict.fromkeys((f"{name}/mean", *(f"{name}/{pair}" for pair in TABLE_11)), True),
        headline=f"{name}/mean",
        benchmark=subsets_at_hand(lambda: {pair: _pair(pair, path) for pair in TABLE_11}),
        texts=pair_texts,
        item_texts=subset_item_texts,
        score=score,
        source="SAN, table 11",
    )


def _pair(pair: str, path: str | None) -> Pairs:
    """This pair as its set has it. Raises CorpusError if the set lacks it."""
    name, key = TABLE_11[pair]
    whole = joined(sts.read(name, path=path).values())
    keys = whole.text_keys()
    if key not in keys:
        raise CorpusError(
            f"corpora: suppression/table11: {name} does not hold the pair {pair!r} of SAN's table 11\n"
            f"  accepted: {name} as published, {len(keys)} pairs were read"
        )
    return whole.take([keys.index(key)])
