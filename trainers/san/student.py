"""The model of a step: an encoder, the head of training, and which texts run at which dropout rate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from trainers.encoders.encoder import Encoder
from trainers.encoders.second_stream import SecondStream
from trainers.encoders.tokens import Tokens
from trainers.engine.micro_batches import MicroBatch, in_parts
from trainers.engine.streams import seed_global, torch_stream
from trainers.san.dropout import ByText, at, rate_of
from trainers.san.mixture import Mixture

if TYPE_CHECKING:
    from trainers.san.settings import Settings


class Student(nn.Module):
    """Texts to tanh(W h + b), h what the encoder's readout gives.

    One forward takes all texts of a step, so that DeepSpeed sees one. san_pass "separate": `apart` run at rate p2
    and draw from a stream of their own, so that the views drop what they drop without them; in the views' pass
    where the encoder can (`trainers.encoders.second_stream`), else after it, as on a card. "fused": one stream, in
    which each token has the rate of its text. mixture: the policies of RLRD, which are kept here so that a
    checkpoint holds them. micro: how many texts are read at a time.
    """

    def __init__(
        self,
        encoder: Encoder,
        settings: Settings,
        seed: int,
        micro: MicroBatch | None = None,
        *,
        on_card: bool = False,
    ) -> None:
        super().__init__()
        self.encoder, self.micro = encoder, micro or MicroBatch(None, auto=False)
        self.head = head(encoder.width, seed)
        fused = settings.san_pass == "fused"
        self.p1, self.p2 = rate_of(encoder.backbone) if fused else None, settings.p2
        self.by_text = ByText(encoder) if fused else None
        self.second = SecondStream(encoder) if encoder.packed and not fused and not on_card else None
        self.mixture = Mixture(settings, encoder.width, seed) if settings.policies_learn else None

    def forward(self, views: Tokens, apart: Tokens | None, stream: int) -> Tensor:
        """views at p1, then `apart` at p2, in the order given. -> (V + A, H)."""
        if apart is None:
            states = self._read(views, self._pooled)
        elif self.by_text is not None:
            both = Tokens.joined([views, apart])
            rates = np.repeat([self.p1 or 0.0, self.p2], [len(views), len(apart)])
            states = self._read(both, partial(self._pooled_by_text, rates=rates))
        elif self.second is not None and self.encoder.running is None and self._whole:
            with self.second.drawing(views, stream, rate=self.p2):
                states = self.encoder.pooled(views, apart)
        else:
            with self.encoder.one_lookup(views, apart) if self._whole else nullcontext():
                first = self._read(views, self._pooled)
                seed_global(stream)
                states = torch.cat([first, self._read(apart, self._pooled_apart)])
        with torch.autocast(states.device.type, enabled=False):  # at τ = .05 a cosine's third digit counts
            return torch.tanh(self.head(states.float()))

    @property
    def _whole(self) -> bool:
        """Whether all texts are read at a time: parts are read again, when what they shared is gone."""
        return self.micro.size is None

    def _read(self, tokens: Tokens, read: Callable[[Tokens, np.ndarray], Tensor]) -> Tensor:
        return in_parts(read, tokens, self.micro)

    def _pooled(self, tokens: Tokens, places: np.ndarray) -> Tensor:
        return self.encoder.pooled(tokens)

    def _pooled_apart(self, tokens: Tokens, places: np.ndarray) -> Tensor:
        with at(self.encoder.backbone, self.p2):
            return self.encoder.pooled(tokens)

    def _pooled_by_text(self, tokens: Tokens, places: np.ndarray, rates: np.ndarray) -> Tensor:
        assert self.by_text is not None
        with self.by_text.rates(tokens, rates[places]):
            return self.encoder.pooled(tokens)


def head(width: int, seed: int) -> nn.Linear:
    """A linear layer as BERT's are initialised, weights N(0, .02²) and no bias, from the run's own stream."""
    layer = nn.Linear(width, width)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(width, width, generator=torch_stream(seed, "init", "head")) * 0.02)
        layer.bias.zero_()
    return layer
