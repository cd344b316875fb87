"""Texts that pass with others and draw their dropout from a stream of their own.

    second = SecondStream(encoder)
    with second.drawing(pairs, number):
        encoder(pairs, negatives)

What the first texts drop is what they would without the others, so that an arm with the others and one without
share it; and one pass over both is faster than two, which each write a gradient of every weight. On a CPU the
others drop what they would in a pass of their own after `torch.manual_seed(number)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainers.encoders.dropout import Drop, ask, draw, dropout
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens


@dataclass(frozen=True)
class _Apart:
    """How the texts of a pass drop that are behind its first `first` tokens. rate: None for that of each place."""

    first: int
    stream: torch.Generator
    rate: float | None

    def dropped(self, values: Tensor, rate: float) -> Tensor:
        """From this stream."""
        return dropout(values, self._own(rate), self.stream)

    def dropped_behind(self, values: Tensor, rate: float) -> Tensor:
        """values (1, M, D): the first from torch's own stream, then the others from this one."""
        own = self._own(rate)
        if values.device.type == "cpu":
            noise = torch.empty_like(values)
            draw(noise[:, : self.first], rate)
            draw(noise[:, self.first :], own, self.stream)
            return values * noise
        first, others = values.split([self.first, values.shape[1] - self.first], dim=1)
        return torch.cat([dropout(first, rate), dropout(others, own, self.stream)], dim=1)

    def _own(self, rate: float) -> float:
        return rate if self.rate is None else self.rate


@dataclass
class _Drawn:
    """What `drawing` was told, and how far it is. first: tokens of the first texts that are still to pass."""

    first: int
    number: int
    rate: float | None
    stream: torch.Generator | None = None  # made on the device of the first pass

    def of_pass(self, tokens: int, device: torch.device) -> _Apart:
        """Of the next so many tokens."""
        if self.stream is None:
            self.stream = torch.Generator(device).manual_seed(self.number)
        first = min(tokens, self.first)
        self.first -= first
        return _Apart(first, self.stream, self.rate)


class SecondStream:
    """What the dropouts of an encoder that runs packed draw from for some of its texts; one for an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        assert encoder.packed, "rectangles of a padded backbone pass one after the other as it is"
        self.dropped: Drop | None = None  # of the pass that runs
        self._drawn: _Drawn | None = None
        ask(encoder.backbone, self)
        encoder.backbone.register_forward_pre_hook(self._next_pass, with_kwargs=True)

    @contextmanager
    def drawing(self, first: Tokens, number: int, *, rate: float | None = None) -> Iterator[None]:
        """While these texts and others are encoded together, once: the others draw from the stream of this number,
        at this rate or at that of each place."""
        self._drawn = _Drawn(len(first.ids), number, rate)
        try:
            yield
            assert not self._drawn.first, "the encoder was called with all of the first texts"
        finally:
            self._drawn = self.dropped = None

    def _next_pass(self, body: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._drawn is None:
            return None
        row = named["inputs_embeds"]
        apart = self._drawn.of_pass(row.shape[1], row.device)
        self.dropped = apart.dropped_behind
        begins = np.cumsum([0, *(len(area.cells) for area in named["layout"])])
        areas = [
            replace(area, dropped=apart.dropped) if begin >= apart.first else area
            for area, begin in zip(named["layout"], begins, strict=False)
        ]
        return given, {**named, "layout": areas}
