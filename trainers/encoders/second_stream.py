"""Encodes two sets of texts in one pass, where the second set draws its dropout from a random stream of its own.

    second = SecondStream(encoder)
    with second.drawing(pairs, number):
        encoder(pairs, negatives)

The first texts draw the same dropout as without the second, so that arms with and without the second texts share
it, and the second the same as in a pass of their own after `torch.manual_seed(number)`. On a CPU one pass over
both is faster than two, which would each write a gradient of every weight. A card runs two, whose dropout comes
from torch's own stream: its graphs draw from no other (`trainers.encoders.graphs`), and a stack draws the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainers.encoders.dropout import Drop, ask, draw, dropout
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens


@dataclass(frozen=True)
class _Apart:
    """The dropout of a pass behind its first `first` tokens. rate: replaces each module's rate; None keeps it."""

    first: int
    stream: torch.Generator
    rate: float | None

    def dropped(self, values: Tensor, rate: float) -> Tensor:
        """Dropout of values that belong to the second texts alone."""
        return dropout(values, self._own(rate), self.stream)

    def dropped_behind(self, values: Tensor, rate: float) -> Tensor:
        """Dropout of values (1, M, D): the first tokens by torch's global stream, the others by this one."""
        noise = torch.empty_like(values)
        draw(noise[:, : self.first], rate)
        draw(noise[:, self.first :], self._own(rate), self.stream)
        return values * noise

    def _own(self, rate: float) -> float:
        return rate if self.rate is None else self.rate


@dataclass
class _Drawn:
    """The arguments of `drawing`, and its progress. first: tokens of the first texts that have not passed yet."""

    first: int
    number: int
    rate: float | None
    stream: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.stream = torch.Generator().manual_seed(self.number)

    def of_pass(self, tokens: int) -> _Apart:
        """The dropout of the next pass, which has so many tokens."""
        first = min(tokens, self.first)
        self.first -= first
        return _Apart(first, self.stream, self.rate)


class SecondStream:
    """Gives the second texts of a packed encoder on a CPU a dropout stream of their own. One for each encoder."""

    def __init__(self, encoder: Encoder) -> None:
        assert encoder.packed, "rectangles of a padded backbone pass one after the other as it is"
        self.dropped: Drop | None = None  # the dropout of the pass in progress
        self._drawn: _Drawn | None = None
        ask(encoder.backbone, self)
        encoder.backbone.register_forward_pre_hook(self._next_pass, with_kwargs=True)

    @contextmanager
    def drawing(self, first: Tokens, number: int, *, rate: float | None = None) -> Iterator[None]:
        """Within, encode these texts and others together, once: the others draw from a stream seeded by `number`.

        rate: the others' dropout rate; None for that of each module.
        """
        self._drawn = _Drawn(len(first.ids), number, rate)
        try:
            yield
            assert not self._drawn.first, "the encoder was called with all of the first texts"
        finally:
            self._drawn = self.dropped = None

    def _next_pass(self, body: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._drawn is None:
            return None
        apart = self._drawn.of_pass(named["inputs_embeds"].shape[1])
        self.dropped = apart.dropped_behind
        begins = np.cumsum([0, *(len(area.cells) for area in named["layout"])])
        areas = [
            replace(area, dropped=apart.dropped) if begin >= apart.first else area
            for area, begin in zip(named["layout"], begins, strict=False)
        ]
        return given, {**named, "layout": areas}
