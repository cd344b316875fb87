"""Gathers the rows of all workers on each worker, for losses that compare every text with every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from trainers.engine.world import World


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        whole = gradient.contiguous().clone()
        dist.all_reduce(whole)  # every worker's loss depends on our rows
        return whole.chunk(dist.get_world_size())[dist.get_rank()]


def gathered(rows: Tensor, world: World) -> Tensor:
    """The rows of all workers in rank order; gradients flow back to each worker. (b, D) -> (size · b, D)."""
    return rows if world.size == 1 else _Gather.apply(rows)
