"""The gate of a gated readout: computes a weight for each layer from the text itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainers.engine.streams import draw_linear

HIDDEN = 128  # ours: the paper says only that the gate is an MLP. With D = 768 and K = 4: 98,948 parameters


class LayerGate(nn.Module):
    """α(x) = softmax(W₂ GELU(W₁ u(x) + b₁) + b₂), where u(x) is the text's token mean in the last layer.

    It starts at zero, so with uniform weights; before training `initialise` draws W₁ and b₁, without which no
    gradient would reach them. Source: Concept, section 4.2 (M2).
    """

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.inner = nn.utils.skip_init(nn.Linear, width, HIDDEN)
        self.outer = nn.utils.skip_init(nn.Linear, HIDDEN, layers)
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    @property
    def trained(self) -> bool:
        """True if any weight is not 0: the gate was loaded from a trained encoder."""
        return any(bool(parameter.any()) for parameter in self.parameters())

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first layer as torch draws a linear one; the second stays zero, so the mixture uniform."""
        draw_linear(self.inner, generator)

    def forward(self, last: Tensor) -> Tensor:
        """Weights of the mixed layers for each text, deepest last. (B, D) -> (B, K), rows of sum 1."""
        return self.outer(nn.functional.gelu(self.inner(last))).float().softmax(dim=-1)
