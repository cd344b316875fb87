"""The recipe: every text is drawn to its partner, and away from the partners of the others in its batch.

semray imports this file only where something is trained, so torch may be imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from semray.extending import Progress, World, numpy_stream
from semray_partners.corpus import Corpus
from semray_partners.settings import Settings
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens
from trainers.engine import loop
from trainers.engine.optimisation import parameter_groups
from trainers.engine.process import reset_process
from trainers.losses import info_nce


@dataclass(frozen=True, eq=False)
class Batch:
    """tokens: b texts, then their b partners."""

    tokens: Tokens

    def __len__(self) -> int:
        return len(self.tokens.lengths)


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """An encoder from a backbone's folder, or from one that was saved, without training."""
    encoder = Encoder.load(folder, readout="mean", max_length=settings.max_length, precision=world.precision)
    return encoder.to(world.device)


def fit(
    settings: Settings, backbone: Path, corpus: Corpus, seed: int, world: World
) -> tuple[Encoder, list[Progress]]:
    """Train an encoder from this backbone; its curve has one Progress a step."""
    reset_process(seed, world)
    encoder = read(settings, backbone, world)
    curve = loop.fit(
        encoder,
        partial(loss, settings=settings),
        batches(settings, corpus, encoder.tokenise, seed),
        groups=parameter_groups(
            encoder,
            depth=encoder.depth,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
        ),
        recipe=loop.Recipe(steps=settings.steps, warmup=settings.steps // 10),
        seed=seed,
        world=world,
        look=partial(world.look, encoder),
    )
    return encoder, curve


def batches(
    settings: Settings, corpus: Corpus, tokenise: Callable[[list[str]], Tokens], seed: int
) -> Callable[[int], Batch]:
    """The function from step to batch. Order is drawn from a stream of its own: arms of one seed see the same."""
    order = numpy_stream(seed, "data").permutation(len(corpus.train))

    def batch(step: int) -> Batch:
        places = np.arange(step * settings.batch_size, (step + 1) * settings.batch_size) % len(order)
        pairs = [corpus.train[row] for row in order[places]]
        return Batch(tokenise([left for left, _ in pairs] + [right for _, right in pairs]))

    return batch


def loss(encode: Callable[[Tokens], Tensor], batch: Batch, settings: Settings) -> dict[str, Tensor]:
    """Every weighted term by name; the engine adds them up and reports each."""
    left, right = encode(batch.tokens).chunk(2)  # (b, D) each, of length 1
    return {"info_nce": info_nce(left, right, temperature=settings.temperature)}
