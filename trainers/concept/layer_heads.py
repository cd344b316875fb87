"""Deep supervision: a linear head on every layer that the readout mixes, there in training alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trainers.encoders.readouts import mixed
from trainers.engine.streams import draw_linear
from trainers.losses import unit

if TYPE_CHECKING:
    from trainers.encoders.encoder import Encoder
    from trainers.encoders.tokens import Tokens


class LayerSupervised(nn.Module):
    """An encoder with heads, which nothing saves or reads: what is kept of it is the encoder alone.

    Source: Concept, section 4.2 (M3). The paper says "a separate linear projection head"; that it keeps the width
    and has a bias is ours.
    """

    def __init__(self, encoder: Encoder, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.width
        heads = [nn.utils.skip_init(nn.Linear, width, width) for _ in range(encoder.layers)]
        for head in heads:
            draw_linear(head, generator)
        self.layer_heads = nn.ModuleList(heads)

    def forward(self, tokens: Tokens, *, heads: bool = False) -> Tensor:
        """Unit vectors of the texts, float32: of the readout, (N, D); with heads, those of each layer's head after
        them, (1 + K, N, D)."""
        if not heads:
            return self.encoder(tokens)
        layers = self.encoder.mixed_layers(tokens)  # (K, N, D)
        weights = self.encoder.mixture(layers[-1])
        assert weights is not None, "only a mixture of layers has heads"
        read = mixed("nk,knd->nd", weights[:, -len(layers) :], layers)
        projected = [head(layer) for head, layer in zip(self.layer_heads, layers, strict=True)]
        return unit(torch.stack([read, *projected]))
