"""Sparse gradients of embedding tables: a step reads few rows, and only those get gradients until the update.

A dense gradient covers the whole vocabulary, half the weights of MiniLM, and is nearly all 0; every step would
clear it, measure its norm and clip it. torch's AdamW needs it dense: one dense tensor per table is kept, of which
only the rows of the step before are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MANY = 4096  # rows; a step may well read all of a smaller table


@dataclass(eq=False)
class _Table:
    """An embedding table (V, D), its last dense gradient (V, D) and the rows (n,) of that which are not 0."""

    module: nn.Embedding
    last: tuple[Tensor, Tensor] | None = None

    @property
    def sparse_gradient(self) -> Tensor | None:
        """The gradient that the backward pass left; None if it is dense, as of a table tied to an output layer."""
        gradient = self.module.weight.grad
        return gradient if gradient is not None and gradient.is_sparse else None

    def make_dense(self, gradient: Tensor) -> None:
        """Put this gradient into the dense tensor of the step before, and make that the weight's gradient."""
        rows = gradient.indices()[0]
        if self.last is None:
            dense = torch.zeros_like(self.module.weight)
        else:
            dense, rows_before = self.last
            dense.index_fill_(0, rows_before, 0.0)
        self.last = dense, rows
        self.module.weight.grad = dense.index_copy_(0, rows, gradient.values())


class RowGradients:
    """Sparse gradients for the large trainable embedding tables among `modules`."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._tables = [
            _Table(module)
            for module in modules
            if type(module) is nn.Embedding and module.num_embeddings >= MANY and module.weight.requires_grad
        ]

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Until the block ends, backward passes leave sparse gradients."""
        for table in self._tables:
            table.module.sparse = True
        try:
            yield
        finally:
            for table in self._tables:
                table.module.sparse = False

    def sum_repeated(self) -> None:
        """Sum the gradient rows of each word that was read more than once."""
        for table in self._tables:
            if (gradient := table.sparse_gradient) is not None:
                table.module.weight.grad = gradient.coalesce()

    def make_dense(self) -> None:
        """Turn the sparse gradients, after `sum_repeated`, into the dense ones that the optimizer needs."""
        for table in self._tables:
            if (gradient := table.sparse_gradient) is not None:
                table.make_dense(gradient)
