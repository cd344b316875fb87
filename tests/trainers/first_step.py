"""What a training's first step must do to each weight, by AdamW's formula: whatever a family leaves out shows here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

DECAY = 0.5
SMALL = {"clip_norm": 1e-12}  # far below AdamW's ε of 1e-8: what is clipped to it hardly moves


def check_first_step(
    start: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    decayed: Mapping[str, Tensor],
    held: Mapping[str, Tensor],
    rate: Callable[[str], float],
) -> None:
    """Named weights before one step; after it; after it with a weight decay of DECAY; and clipped to SMALL.

    A weight moves by its rate at most, and some of each rate's weights do. Decay takes rate · DECAY of each matrix
    and nothing of biases, normalisations and mixtures.
    """
    furthest: dict[float, float] = {}
    for name, before in start.items():
        own = rate(name)
        furthest[own] = max(furthest.get(own, 0.0), (after[name] - before).abs().max().item())
        lost = own * DECAY * before if before.ndim > 1 else torch.zeros_like(before)
        torch.testing.assert_close(
            after[name] - decayed[name], lost, atol=5e-7, rtol=0, msg=lambda said, name=name: f"{name}: {said}"
        )
        assert (held[name] - before).abs().max() <= own / 100, name
    for own, moved in furthest.items():
        assert abs(moved / own - 1) < 0.02, (own, moved)
