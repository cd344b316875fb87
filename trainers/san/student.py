"""The model of a step: an encoder, the head of training, and which texts run at which dropout rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens
from trainers.engine.streams import torch_stream
from trainers.san.dropout import ByText, at, rate_of
from trainers.san.mixture import Mixture

if TYPE_CHECKING:
    from trainers.san.settings import Settings


class Student(nn.Module):
    """Texts to tanh(W h + b), h what the encoder's readout gives.

    One forward takes all texts of a step, so that DeepSpeed sees one. san_pass "separate": `apart` run in a pass
    of their own at rate p2 and draw from a stream of their own, so that the views drop what they drop without
    them. "fused": one pass, in which each token has the rate of its text. mixture: the policies of RLRD, which
    are kept here so that a checkpoint holds them.
    """

    def __init__(self, encoder: Encoder, settings: Settings, seed: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head(encoder.width, seed)
        fused = settings.san_pass == "fused"
        self.p1, self.p2 = rate_of(encoder.backbone) if fused else None, settings.p2
        self.by_text = ByText(encoder) if fused else None
        learns = settings.host == "rlrd" and settings.rl_update != "fixed"
        self.mixture = Mixture(settings, encoder.width, seed) if learns else None

    def forward(self, views: Tokens, apart: Tokens | None, stream: int) -> Tensor:
        """views at p1, then `apart` at p2, in the order given. -> (V + A, H)."""
        if apart is None:
            states = self.encoder.pooled(views)
        elif self.by_text is not None and self.p1 is not None:
            both = Tokens.joined([views, apart])
            rates = np.repeat([self.p1, self.p2], [len(views), len(apart)])
            with self.by_text.rates(both, rates):
                states = self.encoder.pooled(both)
        else:
            with self.encoder.one_lookup(views, apart):
                first = self.encoder.pooled(views)
                torch.manual_seed(stream)
                with at(self.encoder.backbone, self.p2):
                    states = torch.cat([first, self.encoder.pooled(apart)])
        with torch.autocast(states.device.type, enabled=False):  # at τ = .05 a cosine's third digit counts
            return torch.tanh(self.head(states.float()))


def head(width: int, seed: int) -> nn.Linear:
    """A linear layer as BERT's are initialised, weights N(0, .02²) and no bias, from the run's own stream."""
    layer = nn.Linear(width, width)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(width, width, generator=torch_stream(seed, "init", "head")) * 0.02)
        layer.bias.zero_()
    return layer
