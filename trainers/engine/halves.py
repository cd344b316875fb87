"""Weights of linear layers in bf16, all at once.

Autocast copies each weight when a layer first meets it, and each gradient when that is whole. To ask a GPU for so
many small things takes longer, at a small batch, than to do them. Here it is one for all, forward and back. The
copies are the same, and so is every sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Half:
    """A copy, found while there is one as an attribute of this module. of: what is copied, one below the other."""

    module: nn.Module
    name: str
    of: Sequence[nn.Parameter]


def halves(layer: nn.Linear) -> list[Half]:
    """Of a layer's own parameters, which they hide."""
    return [Half(layer, name, [one]) for name, one in layer._parameters.items() if one is not None]


def with_halves(encode: Callable[..., Tensor], copies: Sequence[Half]) -> Callable[..., Tensor]:
    """A model that runs under autocast with these copies, fresh in each call.

    What is not trained is not copied, but left to autocast.
    """

    def run(*args: Any, **named: Any) -> Tensor:
        with _halved([half for half in copies if all(one.requires_grad for one in half.of)]):
            return encode(*args, **named)

    return run


@contextmanager
def _halved(held: Sequence[Half]) -> Iterator[None]:
    counts = [len(half.of) for half in held]
    copies = _Halves.apply(counts, *(one for half in held for one in half.of)) if held else ()
    for half, copy in zip(held, copies, strict=True):
        half.module.__dict__[half.name] = copy
    try:
        yield
    finally:
        for half in held:
            del half.module.__dict__[half.name]


class _Halves(torch.autograd.Function):
    """Copies, each of as many weights as is counted."""

    @staticmethod
    def forward(ctx: Any, counts: Sequence[int], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        rest = iter(weights)
        each = [[next(rest) for _ in range(count)] for count in counts]
        ctx.rows = [[len(one) for one in own] for own in each]
        copies = [
            own[0].new_empty(sum(rows), *own[0].shape[1:], dtype=torch.bfloat16)
            for own, rows in zip(each, ctx.rows, strict=True)
        ]
        _copy([part for copy, rows in zip(copies, ctx.rows, strict=True) for part in _apart(copy, rows)], weights)
        return tuple(copies)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        parts = [
            part
            for gradient, rows in zip(gradients, ctx.rows, strict=True)
            for part in ([None] * len(rows) if gradient is None else _apart(gradient, rows))
        ]
        whole = [None if one is None else torch.empty_like(one, dtype=torch.float32) for one in parts]
        _copy([one for one in whole if one is not None], [one for one in parts if one is not None])
        return None, *whole


def _apart(copy: Tensor, rows: Sequence[int]) -> Sequence[Tensor]:
    return copy.split(rows) if len(rows) > 1 else (copy,)


def _copy(there: Sequence[Tensor], here: Sequence[Tensor]) -> None:
    if there:
        torch._foreach_copy_(list(there), list(here))
