"""Gradients of tables of embeddings, of which a step reads few rows: of those rows alone, until the update.

Else each step clears, measures and shortens a gradient of the whole vocabulary: half the numbers of MiniLM, nearly
all of them 0. torch's AdamW wants them all; they are kept, and only the rows of the step before are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MANY = 4096  # rows; of a smaller table a step may well read all


@dataclass(eq=False)
class _Table:
    """A table (V, D) and its dense gradient as it was laid last, which is 0 but in these rows."""

    module: nn.Embedding
    laid: tuple[Tensor, Tensor] | None = None  # (V, D), (n,)

    @property
    def rows(self) -> Tensor | None:
        """The gradient as the pass back left it; None if it is dense, of a table that is learnt elsewhere too."""
        gradient = self.module.weight.grad
        return gradient if gradient is not None and gradient.is_sparse else None

    def lay(self, gradient: Tensor) -> None:
        """Make this the dense gradient, in the place of the one before, which must not be in use any more."""
        rows = gradient.indices()[0]
        if self.laid is None:
            dense = torch.zeros_like(self.module.weight)
        else:
            dense, before = self.laid
            dense.index_fill_(0, before, 0.0)
        self.laid = dense, rows
        self.module.weight.grad = dense.index_copy_(0, rows, gradient.values())


class RowGradients:
    """Has the large tables among modules that learn get gradients of rows, and lays those for the optimizer."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._tables = [
            _Table(module)
            for module in modules
            if type(module) is nn.Embedding and module.num_embeddings >= MANY and module.weight.requires_grad
        ]

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While this runs, a pass back leaves rows."""
        for table in self._tables:
            table.module.sparse = True
        try:
            yield
        finally:
            for table in self._tables:
                table.module.sparse = False

    def sum(self) -> None:
        """Of words that were read more than once, make one row."""
        for table in self._tables:
            if (found := table.rows) is not None:
                table.module.weight.grad = found.coalesce()

    def lay(self) -> None:
        """Give the optimizer the dense gradients that it wants, of rows that are summed."""
        for table in self._tables:
            if (found := table.rows) is not None:
                table.lay(found)
