"""The batch of a defsent step depends only on (seed, step), and is then divided among the workers.

So neither resuming nor the number of workers changes the data of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from trainers.engine.limits import check_shared
from trainers.engine.streams import numpy_stream

if TYPE_CHECKING:
    from corpora.defsent.records import Inferences
    from corpora.store.columns import Texts
    from trainers.defsent.settings import Settings
    from trainers.encoders.tokens import Tokens
    from trainers.engine.world import World


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """The texts of one worker's b rows in a step. target (b,): the class of each row.

    tokens: of b texts, or for pairs of b premises followed by b hypotheses. A worker without rows encodes a dummy
    row, with b = 0, so that all workers encode equally often. rows_of_all, texts_of_all: counts over all workers.
    """

    tokens: Tokens
    target: np.ndarray
    rows_of_all: int
    texts_of_all: int

    def __len__(self) -> int:
        return self.texts_of_all


Tokenise = Callable[[Sequence[str]], "Tokens"]


def definition_batches(
    settings: Settings, definitions: Texts, target: np.ndarray, tokenise: Tokenise, seed: int, world: World
) -> Callable[[int], LabelledBatch]:
    """The function from step to batch. target (N,) int64: the vocabulary entry of each definition's word."""
    rows_at = _rows_of(settings, len(target), seed, world)

    def batch(step: int) -> LabelledBatch:
        mine, rows_of_all = rows_at(step)
        texts = definitions.take(mine if len(mine) else np.zeros(1, np.int64))
        return LabelledBatch(tokenise(texts), target[mine], rows_of_all, rows_of_all)

    return batch


def inference_batches(
    settings: Settings, pairs: Inferences, tokenise: Tokenise, seed: int, world: World
) -> Callable[[int], LabelledBatch]:
    """The function from step to a batch of sentence pairs with their labels."""
    rows_at = _rows_of(settings, len(pairs), seed, world)

    def batch(step: int) -> LabelledBatch:
        mine, rows_of_all = rows_at(step)
        encoded = mine if len(mine) else np.zeros(1, np.int64)
        texts = [*pairs.premises.take(encoded), *pairs.hypotheses.take(encoded)]
        return LabelledBatch(tokenise(texts), pairs.label[mine].astype(np.int64), rows_of_all, 2 * rows_of_all)

    return batch


def steps_of_epoch(rows: int, batch_size: int) -> int:
    """Steps in which every row occurs once; the last batch may be smaller, as in the authors' code."""
    return -(-rows // batch_size)


def _rows_of(settings: Settings, rows: int, seed: int, world: World) -> Callable[[int], tuple[np.ndarray, int]]:
    """The function from step to this worker's rows (b,) and the number of rows over all workers."""
    check_shared(settings.batch_size, world.size)
    steps_per_epoch = steps_of_epoch(rows, settings.batch_size)

    @lru_cache(maxsize=1)
    def order(epoch: int) -> np.ndarray:
        if settings.ordered == "file":
            return np.arange(rows)
        return numpy_stream(seed, "data", "order", epoch).permutation(rows)

    def rows_at(step: int) -> tuple[np.ndarray, int]:
        epoch, place = divmod(step, steps_per_epoch)
        batch = order(epoch)[place * settings.batch_size : (place + 1) * settings.batch_size]
        return batch[world.rank :: world.size], len(batch)

    return rows_at
