"""How an encoder that runs packed drops: by 16 random bits a value on a CPU, by torch's own dropout on a GPU.

Of torch a CPU draws a Bernoulli number for each value, on some processors the dearest thing of a step beside its
matrix products (`benchmarks/dropout_draws.py`). Here a rate is a multiple of 1/65,536, and what is kept makes up
for the rate that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16
Drop = Callable[[Tensor, float], Tensor]  # values and a place's rate -> values after dropout, in training


class Dropping(Protocol):
    """Who has an encoder drop otherwise."""

    @property
    def dropped(self) -> Drop | None:
        """How the pass that runs drops hidden states (1, M, D); None for `dropout`."""


class Site(nn.Dropout):
    """A dropout of hidden states that asks how to drop, where there is somebody to ask."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.asked: Dropping | None = None

    def forward(self, values: Tensor) -> Tensor:
        own = None if self.asked is None else self.asked.dropped
        return dropped(values, self.p, own, self.training)


def put_sites(body: nn.Module) -> None:
    """Put a `Site` in the place of each of torch's dropouts, at its rate."""
    for parent in list(body.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, Site(child.p).train(child.training))


def ask(body: nn.Module, who: Dropping) -> None:
    """Have all sites ask this one."""
    for site in body.modules():
        if isinstance(site, Site):
            site.asked = who


def dropped(values: Tensor, rate: float, own: Drop | None, training: bool) -> Tensor:
    """Values after a dropout of one's own, or `dropout` where there is none."""
    if not training:
        return values
    return dropout(values, rate) if own is None else own(values, rate)


def dropout(values: Tensor, rate: float, stream: torch.Generator | None = None) -> Tensor:
    """Values of which this share is dropped, as this stream or torch's own says; the others make up for them."""
    if not rate:
        return values
    if values.device.type == "cpu":
        return values * draw(torch.empty_like(values), rate, stream)
    if stream is None:
        return F.dropout(values, rate)
    kept = torch.empty_like(values).bernoulli_(1 - rate, generator=stream)
    return (values * kept).mul_(made_up_for(rate))


def made_up_for(rate: float) -> float:
    """By what a card multiplies what is kept. A bfloat16 would hold 1.109 instead of 1.111."""
    return 1 / (1 - rate) if rate < 1 else 0.0


def draw(noise: Tensor, rate: float, stream: torch.Generator | None = None) -> Tensor:
    """Fill what a CPU's `dropout` multiplies by, from this stream or torch's own."""
    if not rate:
        return noise.fill_(1.0)
    kept = LEVELS - max(1, round(rate * LEVELS))
    fours = torch.empty(-(-noise.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=stream)
    bits = fours.view(torch.int16)[: noise.numel()].view(noise.shape)
    torch.lt(bits, kept - LEVELS // 2, out=noise)
    return noise.mul_(LEVELS / kept if kept else 0.0)
