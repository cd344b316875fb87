"""Bfloat16 copies of the weights of linear layers, made all at once.

Autocast copies each weight when a layer first uses it, and each gradient when it is complete. At a small batch a
GPU spends more time on launching these many small copies than on making them. Here one launch copies all weights,
and one all gradients. Copies and sums are the same as autocast's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Bf16Copy:
    """Where the bf16 copy of some weights goes: the attribute `name` of `module`, while the model runs.

    weights: the parameters to copy; several are concatenated along their first dimension.
    """

    module: nn.Module
    name: str
    weights: Sequence[nn.Parameter]


def bf16_copies(layer: nn.Linear) -> list[Bf16Copy]:
    """A copy of each of a layer's own parameters, under its own name, so that it hides the parameter."""
    return [Bf16Copy(layer, name, [own]) for name, own in layer._parameters.items() if own is not None]


def with_bf16_copies(encode: Callable[..., Tensor], copies: Sequence[Bf16Copy]) -> Callable[..., Tensor]:
    """Wrap a model that runs under autocast so that each call first makes these copies.

    Weights that are not trained are left to autocast.
    """

    def run(*args: Any, **named: Any) -> Tensor:
        used = trained(copies)
        counts = [len(copy.weights) for copy in used]
        with in_place(used, _ToBf16.apply(counts, *(weight for copy in used for weight in copy.weights))):
            return encode(*args, **named)

    return run


def trained(copies: Sequence[Bf16Copy]) -> list[Bf16Copy]:
    """Those of which all weights are trained."""
    return [copy for copy in copies if all(weight.requires_grad for weight in copy.weights)]


@contextmanager
def in_place(copies: Sequence[Bf16Copy], tensors: Sequence[Tensor]) -> Iterator[None]:
    """Put these tensors where the copies go, until the block ends."""
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.module.__dict__[copy.name] = tensor
    try:
        yield
    finally:
        for copy in copies:
            del copy.module.__dict__[copy.name]


class _ToBf16(torch.autograd.Function):
    """Weights -> bf16 copies. counts: how many consecutive weights each copy concatenates."""

    @staticmethod
    def forward(ctx: Any, counts: Sequence[int], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        rest = iter(weights)
        by_copy = [[next(rest) for _ in range(count)] for count in counts]
        ctx.rows = [[len(weight) for weight in group] for group in by_copy]
        copies = [
            group[0].new_empty(sum(rows), *group[0].shape[1:], dtype=torch.bfloat16)
            for group, rows in zip(by_copy, ctx.rows, strict=True)
        ]
        copy_all(parts(copies, ctx.rows), weights)
        return tuple(copies)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        each = parts(gradients, ctx.rows)
        whole = [None if part is None else torch.empty_like(part, dtype=torch.float32) for part in each]
        copy_all([part for part in whole if part is not None], [part for part in each if part is not None])
        return None, *whole


def parts(copies: Sequence[Any], rows: Sequence[Sequence[int]]) -> list[Any]:
    """The weights of all copies, one after another; None for each weight of a copy that is None.

    rows: of each weight of each copy.
    """
    found: list[Any] = []
    for copy, own in zip(copies, rows, strict=True):
        found += [copy] * len(own) if copy is None or len(own) == 1 else copy.split(own)
    return found


def copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source to its target, in few launches on a GPU."""
    if targets:
        torch._foreach_copy_(list(targets), list(sources))
