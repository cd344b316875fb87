"""The batch of a CALE step: a slice of all pairs in an order that depends on the seed alone.

Resuming, or another number of workers, changes nothing about the pairs that a step sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from corpora.cale.records import CATEGORIES
from corpora.sources.texts import keyed_sha256
from trainers.engine.limits import check_shared
from trainers.engine.streams import numpy_stream

if TYPE_CHECKING:
    from corpora.cale.records import CaleCorpus, OccurrencePairs
    from corpora.sources.occurrences import Occurrence
    from trainers.cale.settings import Settings
    from trainers.encoders.tokens import Tokens
    from trainers.engine.world import World

BLOCK = 1 << 14  # pairs whose ids are in memory at a time


@dataclass(frozen=True, eq=False)
class CaleBatch:
    """This worker's b pairs of a step. tokens: b anchors, then b partners. same (b,) bool: of one concept.

    pairs_of_all, same_of_all: counts over all workers.
    """

    tokens: Tokens
    same: np.ndarray
    pairs_of_all: int
    same_of_all: int

    def __len__(self) -> int:
        return 2 * self.pairs_of_all


def batches(
    settings: Settings,
    corpus: CaleCorpus,
    tokenise: Callable[[Sequence[Occurrence]], Tokens],
    seed: int,
    world: World,
) -> Callable[[int], CaleBatch]:
    """The function from step to batch. After the last pair the order begins again.

    Pairs and occurrences stay in the mapped files; a worker holds the order and the labels, 9 bytes a pair, and
    the pairs of its share of one batch. ValueError as `training_rows` raises it.
    """
    pairs, size = corpus.pairs["train"], settings.batch_size
    order = ordered(corpus, training_rows(settings, pairs, world.size), seed)
    labels = shuffled_labels(pairs, seed) if settings.pairs == "shuffled" else pairs.label

    def batch(step: int) -> CaleBatch:
        drawn = order[np.arange(step * size, (step + 1) * size) % len(order)]
        mine = pairs.take(drawn[world.rank :: world.size])
        same = labels[drawn]
        return CaleBatch(
            tokens=tokenise(corpus.occurrences.take(np.concatenate([mine.anchor, mine.partner]))),
            same=same[world.rank :: world.size],
            pairs_of_all=size,
            same_of_all=int(same.sum()),
        )

    return batch


def training_rows(settings: Settings, pairs: OccurrencePairs, workers: int) -> np.ndarray:
    """The train pairs that this arm learns from: all, or those of one lemma. -> (N,) int64.

    ValueError when there are fewer than a batch holds, or when workers cannot share a batch.
    """
    size = settings.batch_size
    rows = np.flatnonzero(pairs.same_lemma) if settings.pairs == "same_lemma" else np.arange(len(pairs))
    check_shared(size, workers)
    if len(rows) < size:
        raise ValueError(f"train.batch_size = {size}\n  accepted: at most {len(rows)}, the pairs there are")
    return rows


def steps_of(settings: Settings, pairs: OccurrencePairs) -> int:
    """The steps of an arm: as set, or as many as see each of its pairs once, with the last batch filled up."""
    return settings.steps or -(-len(training_rows(settings, pairs, 1)) // settings.batch_size)


def ordered(corpus: CaleCorpus, rows: np.ndarray, seed: int) -> np.ndarray:
    """These rows of the train pairs in the order of this seed: by the hash of seed, anchor, partner, category.

    Arms that learn from a part of the pairs see it in the same relative order as other arms.
    """
    pairs, ids = corpus.pairs["train"], corpus.occurrences.ids
    keys = np.empty(len(rows), np.uint64)
    for begin in range(0, len(rows), BLOCK):
        block = pairs.take(rows[begin : begin + BLOCK])
        names = zip(
            ids.take(block.anchor).to_pylist(),
            ids.take(block.partner).to_pylist(),
            block.category.tolist(),
            strict=True,
        )
        keys[begin : begin + BLOCK] = [
            keyed_sha256("order", seed, anchor, partner, CATEGORIES[category])
            for anchor, partner, category in names
        ]
    return rows[np.argsort(keys, kind="stable")]


def shuffled_labels(pairs: OccurrencePairs, seed: int) -> np.ndarray:
    """The labels, permuted among the pairs of one lemma and among those of two. -> (N,) bool.

    Such labels still correlate with having the same lemma as the real ones do, and with nothing else.
    """
    labels = pairs.label
    for same_lemma in (True, False):
        rows = np.flatnonzero(pairs.same_lemma == same_lemma)
        labels[rows] = numpy_stream(seed, "shuffled", same_lemma).permutation(labels[rows])
    return labels
