"""Weights of linear layers in bf16, all at once.

Autocast copies each weight when a layer first meets it, and each gradient when that is whole. To ask a GPU for so
many small things takes longer, at a small batch, than to do them. Here it is one for all, forward and back. The
copies are the same, and so is every sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def with_halves(encode: Callable[..., Tensor], layers: Sequence[nn.Linear]) -> Callable[..., Tensor]:
    """A model that runs under autocast, these layers with copies of their weights, fresh in each call."""

    def run(*args: Any, **named: Any) -> Tensor:
        with _halved(layers):
            return encode(*args, **named)

    return run


@contextmanager
def _halved(layers: Sequence[nn.Linear]) -> Iterator[None]:
    """Within, attributes of the layers hide their parameters; what is not trained is left to autocast."""
    held = [(layer, name) for layer in layers for name, one in layer._parameters.items() if _trained(one)]
    copies = _Halves.apply(*(layer._parameters[name] for layer, name in held)) if held else ()
    for (layer, name), copy in zip(held, copies, strict=True):
        layer.__dict__[name] = copy
    try:
        yield
    finally:
        for layer, name in held:
            del layer.__dict__[name]


def _trained(one: nn.Parameter | None) -> bool:
    return one is not None and one.requires_grad


class _Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return tuple(_copied(weights, torch.bfloat16))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        whole = iter(_copied([one for one in gradients if one is not None], torch.float32))
        return tuple(None if one is None else next(whole) for one in gradients)


def _copied(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    copies = [torch.empty_like(one, dtype=dtype) for one in tensors]
    if copies:
        torch._foreach_copy_(copies, list(tensors))
    return copies
