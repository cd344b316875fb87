"""Training an encoder by the engine: what the families share besides their losses and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from trainers.encoders.encoder import Encoder
from trainers.engine import loop
from trainers.engine.loop import B, Encode, Recipe
from trainers.engine.optimisation import parameter_groups
from trainers.engine.world import Progress, World


def fit_encoder(
    encoder: Encoder,
    loss: Callable[[Encode, B], Mapping[str, Tensor]],
    batches: Callable[[int], B],
    *,
    recipe: Recipe,
    learning_rate: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    readout_multiplier: float = 1.0,
    seed: int,
    world: World,
    measured: Any = None,
) -> list[Progress]:
    """Train an encoder in place and return its curve; it is ready for use afterwards.

    measured: what `world.look` is given after the steps it asks for, such as the family's own encoder around this
    one; None for the encoder itself. Otherwise as `loop.fit` and `parameter_groups`.
    """
    curve = loop.fit(
        encoder,
        loss,
        batches,
        groups=parameter_groups(
            encoder,
            depth=encoder.backbone.config.num_hidden_layers,
            learning_rate=learning_rate,
            layer_decay=layer_decay,
            weight_decay=weight_decay,
            readout_multiplier=readout_multiplier,
        ),
        recipe=recipe,
        seed=seed,
        world=world,
        look=lambda: world.look(encoder if measured is None else measured),
    )
    encoder.eval()
    return curve
