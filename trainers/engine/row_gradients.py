"""Gradients of tables of embeddings, of which a step reads few rows: of those rows alone, until the update.

Else each step clears, measures and shortens a gradient of the whole vocabulary: half the numbers of MiniLM, nearly
all of them 0. torch's AdamW wants them all; they are kept, and only the rows of the step before are cleared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MANY = 4096  # rows; of a smaller table a step may well read all


@dataclass(eq=False)
class _Table:
    """A table's gradient (V, D) where it was last laid, 0 but for these rows."""

    weight: Tensor
    dense: Tensor | None = None
    rows: Tensor | None = None

    def lay(self) -> None:
        """Make the gradient a dense one; what is dense already was learnt elsewhere too, and stays."""
        gradient = self.weight.grad
        if gradient is None or not gradient.is_sparse:
            return
        found = gradient.coalesce()
        if self.dense is None or self.rows is None:
            self.dense = torch.zeros_like(self.weight)
        else:
            self.dense.index_fill_(0, self.rows, 0.0)
        self.rows = found.indices()[0]
        self.weight.grad = self.dense.index_copy_(0, self.rows, found.values())


class RowGradients:
    """Of all large tables of a model that learn."""

    def __init__(self, model: nn.Module) -> None:
        self._modules = [
            module
            for module in model.modules()
            if type(module) is nn.Embedding and module.num_embeddings >= MANY and module.weight.requires_grad
        ]
        self._tables = [_Table(module.weight) for module in self._modules]

    @contextmanager
    def found(self) -> Iterator[None]:
        """While this runs, a pass back finds gradients of rows."""
        for module in self._modules:
            module.sparse = True
        try:
            yield
        finally:
            for module in self._modules:
                module.sparse = False

    def lay(self) -> None:
        """Give the optimizer the dense gradients that it wants."""
        for table in self._tables:
            table.lay()
