"""Many parameters in the memory of one, which an optimiser may hold in their stead.

A processor spends time on each tensor of a list that it asks a card to clip or to update, several times as much
for the 197 of BERT-base as for few large ones (`benchmarks/gpu.py`, section `update`). Each element is updated as
it would be in a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor, nn

ROOM = 128  # bytes: a part begins at a multiple of them, where kernels read and write whole lines


class FlatParameters:
    """Parameters of one kind and device, one after another in the memory of `whole` (S,).

    `whole` gets the gradients of all: whoever computes them gives them to `add`, and what a backward pass leaves
    at a part is added by itself.
    """

    def __init__(self, parts: Sequence[nn.Parameter]) -> None:
        kinds = {(part.dtype, part.device) for part in parts}
        assert len(kinds) == 1, f"of several kinds: {kinds}"
        self.parts = list(parts)
        room = ROOM // parts[0].element_size()
        *self._begins, self._size = accumulate((-(-part.numel() // room) * room for part in parts), initial=0)
        self.whole = nn.Parameter(self.joined([part.data for part in parts]))
        for part, view in zip(parts, self.views(self.whole.data), strict=True):
            part.data = view
        self._hooks = [
            part.register_post_accumulate_grad_hook(partial(self._add_part, place))
            for place, part in enumerate(parts)
        ]

    def views(self, memory: Tensor) -> list[Tensor]:
        """Each part's place in a tensor (S,), in its shape."""
        return [self.view(memory, place) for place in range(len(self.parts))]

    def view(self, memory: Tensor, place: int) -> Tensor:
        begin, part = self._begins[place], self.parts[place]
        return memory[begin : begin + part.numel()].view(part.shape)

    def joined(self, each: Sequence[Tensor]) -> Tensor:
        """A tensor (S,) that holds these, one of each part."""
        memory = each[0].new_zeros(self._size)
        for view, one in zip(self.views(memory), each, strict=True):
            view.copy_(one)
        return memory

    def add(self, gradient: Tensor) -> None:
        """Add gradients (S,) of all parts; the first ones are taken as they are, and will be changed."""
        if self.whole.grad is None:
            self.whole.grad = gradient
        else:
            self.whole.grad += gradient

    def keep(self, gradient: Tensor) -> None:
        """If this tensor was taken, take a copy in its place: it is about to be written anew."""
        if self.whole.grad is gradient:
            self.whole.grad = gradient.clone()

    def _add_part(self, place: int, part: Tensor) -> None:
        """Add what a backward pass has left at a part."""
        gradient, part.grad = part.grad, None
        if gradient is None:  # torch 2.13 calls hooks of a part also where a function of autograd gives it none
            return
        if self.whole.grad is None:
            self.whole.grad = torch.zeros_like(self.whole)
        self.view(self.whole.grad, place).add_(gradient)

    def separate(self) -> None:
        """Give each parameter memory of its own again, and that of all back."""
        self.whole.grad = None
        for hook in self._hooks:
            hook.remove()
        for part in self.parts:
            part.data = part.data.clone()
        self.whole.data = self.whole.data.new_empty(0)  # an engine may hold the parameter itself for longer
