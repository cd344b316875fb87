"""Texts that pass beside others and draw their dropout from a stream of their own, as if they passed after them.

    beside = Beside(encoder)
    with beside.drawing(pairs, stream, device="cpu"):
        encoder(pairs, negatives)

What the first texts drop is what they would without the others, so that an arm with the others and one without
share it; and one pass over both is faster than two, which each write a gradient of every weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from trainers.encoders.encoder import Encoder
from trainers.encoders.packing import put_dropouts
from trainers.encoders.tokens import Tokens


@dataclass(frozen=True)
class _Apart:
    """How the texts of a pass drop that are behind its first `first` tokens. rate: None for that of each place."""

    first: int
    stream: torch.Generator
    rate: float | None

    def dropped(self, values: Tensor, rate: float) -> Tensor:
        """As torch's own dropout, figure for figure on a CPU, from this stream."""
        share = rate if self.rate is None else self.rate
        if not share:
            return values
        kept = torch.empty_like(values).bernoulli_(1 - share, generator=self.stream)
        return values * kept.div_(1 - share)


class _Site(nn.Dropout):
    """A dropout that knows which tokens of a pass drop otherwise."""

    def __init__(self, rate: float, beside: Beside) -> None:
        super().__init__(rate)
        self.beside = (beside,)  # no submodule: it holds no parameters

    def forward(self, values: Tensor) -> Tensor:
        """values (1, M, D)."""
        apart = self.beside[0].running
        if apart is None or not self.training:
            return dropout(values, self.p, self.training)
        first, others = values.split([apart.first, values.shape[1] - apart.first], dim=1)
        return torch.cat([dropout(first, self.p), apart.dropped(others, self.p)], dim=1)


class Beside:
    """The second stream of an encoder that runs packed."""

    def __init__(self, encoder: Encoder) -> None:
        assert encoder.packed, "rectangles of a padded backbone pass one after the other as it is"
        self.running: _Apart | None = None  # of the pass that runs
        self._coming: _Apart | None = None  # of what is still to pass
        put_dropouts(encoder.backbone, partial(_Site, beside=self))
        encoder.backbone.register_forward_pre_hook(self._next_pass, with_kwargs=True)

    @contextmanager
    def drawing(self, first: Tokens, stream: int, *, device: str, rate: float | None = None) -> Iterator[None]:
        """While these texts and others are encoded together, once: the others draw from this stream, on the device
        of the encoder, at this rate or at that of each place."""
        generator = torch.Generator(device).manual_seed(stream)
        self._coming = _Apart(len(first.ids), generator, rate)
        try:
            yield
        finally:
            self._coming = self.running = None

    def _next_pass(self, body: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._coming is None:
            return None
        tokens = named["inputs_embeds"].shape[1]
        self.running = replace(self._coming, first=min(tokens, self._coming.first))
        self._coming = replace(self._coming, first=self._coming.first - self.running.first)
        begins = np.cumsum([0, *(len(area.cells) for area in named["layout"])])
        areas = [
            replace(area, dropped=self.running.dropped) if begin >= self.running.first else area
            for area, begin in zip(named["layout"], begins, strict=False)
        ]
        return given, {**named, "layout": areas}
