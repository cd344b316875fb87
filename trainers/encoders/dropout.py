"""Dropout of packed encoders: with 16 random bits a value on a CPU, and by torch's own dropout on a GPU.

On a CPU torch draws a Bernoulli number for each value, on some processors the most expensive part of a step beside
its matrix products (`benchmarks/dropout_draws.py`). Here a rate is rounded to a multiple of 1/65,536, and kept
values are scaled by the rounded rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16
Drop = Callable[[Tensor, float], Tensor]  # values and a module's rate -> values after dropout, in training


class Dropping(Protocol):
    """An object that replaces an encoder's dropout."""

    @property
    def dropped(self) -> Drop | None:
        """The dropout of hidden states (1, M, D) in the pass in progress; None for `dropout`."""


class Site(nn.Dropout):
    """A dropout of hidden states that `asked`, if set, may replace."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.asked: Dropping | None = None

    def forward(self, values: Tensor) -> Tensor:
        own = None if self.asked is None else self.asked.dropped
        return dropped(values, self.p, own, self.training)


def put_sites(body: nn.Module) -> None:
    """Replace each of torch's dropouts by a `Site` of the same rate."""
    for parent in list(body.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, Site(child.p).train(child.training))


def ask(body: nn.Module, who: Dropping) -> None:
    """Make `who` decide the dropout of all sites."""
    for site in body.modules():
        if isinstance(site, Site):
            site.asked = who


def dropped(values: Tensor, rate: float, own: Drop | None, training: bool) -> Tensor:
    """In training apply `own`, or `dropout` if that is None; otherwise return the values unchanged."""
    if not training:
        return values
    return dropout(values, rate) if own is None else own(values, rate)


def dropout(values: Tensor, rate: float, stream: torch.Generator | None = None) -> Tensor:
    """Set a share `rate` of the values to 0 and scale the others up. stream: None for torch's global stream."""
    if not rate:
        return values
    if values.device.type == "cpu":
        return values * draw(torch.empty_like(values), rate, stream)
    assert stream is None, "only a CPU draws dropout from streams of its own"
    return F.dropout(values, rate)


def made_up_for(rate: float) -> float:
    """The factor on kept values on a GPU; not a bfloat16, which would hold 1.109 instead of 1.111."""
    return 1 / (1 - rate) if rate < 1 else 0.0


def draw(noise: Tensor, rate: float, stream: torch.Generator | None = None) -> Tensor:
    """Fill `noise` with the factors of a CPU's `dropout`. stream: None for torch's global stream."""
    if not rate:
        return noise.fill_(1.0)
    kept = LEVELS - max(1, round(rate * LEVELS))
    fours = torch.empty(-(-noise.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=stream)
    bits = fours.view(torch.int16)[: noise.numel()].view(noise.shape)
    torch.lt(bits, kept - LEVELS // 2, out=noise)
    return noise.mul_(LEVELS / kept if kept else 0.0)
