"""The batch of a defsent step: a function of (seed, step) alone, then shared out among the workers.

Resuming, or another number of workers, changes nothing about the data that a step sees.
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
    """What one worker encodes in a step: the texts of its b rows, target (b,) what each row's answer is.

    Of pairs the tokens are those of b premises, then of b hypotheses. A worker without a row encodes one that is
    not its own, with b = 0: workers encode equally often. rows_of_all, texts_of_all: counts over all workers.
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
    """From a step to its definitions with the vocabulary entry of each one's word, (N,) int64 in all."""
    drawn = _rows_of(settings, len(target), seed, world)

    def batch(step: int) -> LabelledBatch:
        mine, every = drawn(step)
        texts = definitions.take(mine if len(mine) else np.zeros(1, np.int64))
        return LabelledBatch(tokenise(texts), target[mine], every, every)

    return batch


def inference_batches(
    settings: Settings, pairs: Inferences, tokenise: Tokenise, seed: int, world: World
) -> Callable[[int], LabelledBatch]:
    """From a step to its sentence pairs with their labels."""
    drawn = _rows_of(settings, len(pairs), seed, world)

    def batch(step: int) -> LabelledBatch:
        mine, every = drawn(step)
        read = mine if len(mine) else np.zeros(1, np.int64)
        texts = [*pairs.premises.take(read), *pairs.hypotheses.take(read)]
        return LabelledBatch(tokenise(texts), pairs.label[mine].astype(np.int64), every, 2 * every)

    return batch


def steps_of_epoch(rows: int, batch_size: int) -> int:
    """Batches that hold every row once; the last may be smaller, as in the authors' code."""
    return -(-rows // batch_size)


def _rows_of(settings: Settings, rows: int, seed: int, world: World) -> Callable[[int], tuple[np.ndarray, int]]:
    """From a step to this worker's rows (b,), and how many rows the step has over all workers."""
    check_shared(settings.batch_size, world.size)
    a_round = steps_of_epoch(rows, settings.batch_size)

    @lru_cache(maxsize=1)
    def order(epoch: int) -> np.ndarray:
        if settings.ordered == "file":
            return np.arange(rows)
        return numpy_stream(seed, "data", "order", epoch).permutation(rows)

    def drawn(step: int) -> tuple[np.ndarray, int]:
        epoch, place = divmod(step, a_round)
        of_all = order(epoch)[place * settings.batch_size : (place + 1) * settings.batch_size]
        return of_all[world.rank :: world.size], len(of_all)

    return drawn
