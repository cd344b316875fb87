"""Many parameters in the memory of one, which an optimiser holds in their stead.

A processor spends time on each tensor of a list that it asks a card to clip or to update, several times as much
for the 197 of BERT-base as for few large ones (`benchmarks/gpu.py`, section `update`). Each element is updated as
it would be in a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

ROOM = 32  # numbers: a part begins at a multiple of 128 bytes, where kernels read and write whole lines


class FlatParameters:
    """Parameters of one kind and device, one after another in the memory of `whole` (S,).

    `whole` gets the gradients of all: whoever computes them gives them to `add`, and what a backward pass leaves
    at a part is added by itself.
    """

    def __init__(self, parts: Sequence[nn.Parameter]) -> None:
        self.parts = list(parts)
        *self._begins, size = accumulate((-(-part.numel() // ROOM) * ROOM for part in parts), initial=0)
        self.whole = nn.Parameter(torch.zeros(size, dtype=parts[0].dtype, device=parts[0].device))
        for part, view in zip(parts, self.views(self.whole.data), strict=True):
            part.data = view.copy_(part.data)
        self._hooks = [
            part.register_post_accumulate_grad_hook(partial(self._add_part, place))
            for place, part in enumerate(parts)
        ]

    def views(self, memory: Tensor) -> list[Tensor]:
        """Each part's place in a tensor (S,), in its shape."""
        return [
            memory[begin : begin + part.numel()].view(part.shape)
            for begin, part in zip(self._begins, self.parts, strict=True)
        ]

    def add(self, gradient: Tensor) -> None:
        """Add gradients (S,) of all parts; the first ones are taken as they are, and will be changed."""
        if self.whole.grad is None:
            self.whole.grad = gradient
        else:
            self.whole.grad += gradient

    def _add_part(self, place: int, part: Tensor) -> None:
        """Add what a backward pass has left at a part."""
        gradient, part.grad = part.grad, None
        if gradient is None:  # a part may be asked for a gradient that has gone elsewhere
            return
        if self.whole.grad is None:
            self.whole.grad = torch.zeros_like(self.whole)
        self.views(self.whole.grad)[place] += gradient

    def separate(self) -> None:
        """Give each parameter memory of its own again."""
        for hook in self._hooks:
            hook.remove()
        for part in self.parts:
            part.data = part.data.clone()


def flattened(
    groups: Sequence[dict[str, Any]], parameters: Collection[nn.Parameter]
) -> tuple[list[dict[str, Any]], list[FlatParameters]]:
    """An optimiser's groups in which these parameters, all of one dtype and device, are one in each group."""
    chosen, made, flats = {id(parameter) for parameter in parameters}, list[dict[str, Any]](), []
    for group in groups:
        joined = [parameter for parameter in group["params"] if id(parameter) in chosen]
        others = [parameter for parameter in group["params"] if id(parameter) not in chosen]
        if joined:
            flats.append(FlatParameters(joined))
            others.append(flats[-1].whole)
        made.append({**group, "params": others})
    return made, flats
