"""Matrix products of encoders that run packed, in bf16 on a CPU: by few shapes.

oneDNN, which multiplies there, compiles code for every shape that it meets, and hardly two passes hold as many
tokens. Here zeros make rows of linear layers a multiple of EVEN, so that few shapes serve all passes. Of attention
hardly two rectangles are alike: its small products are float32's (`benchmarks/training_throughput.py`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EVEN = 32  # rows


class EvenLinear(nn.Linear):
    """A linear layer that gives (..., M, I) what torch's does, under autocast on a CPU by more rows."""

    def forward(self, input: Tensor) -> Tensor:
        if input.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        rows = input.flatten(0, -2)
        count = len(rows)
        rows = F.pad(rows.to(torch.get_autocast_dtype("cpu")), (0, 0, 0, -count % EVEN))
        return super().forward(rows)[:count].view(*input.shape[:-1], -1)


def put_even(body: nn.Module) -> None:
    """Make each of torch's linear layers an even one."""
    for module in body.modules():
        if type(module) is nn.Linear:
            module.__class__ = EvenLinear


def in_attention(states: Tensor) -> Tensor:
    """Queries, keys or values as attention multiplies them: on a CPU in float32 instead of bf16."""
    half = states.device.type == "cpu" and states.dtype == torch.bfloat16
    return states.float() if half else states


def attending(device: torch.device) -> AbstractContextManager[object]:
    """Within, on a CPU, products are in the precision of what is multiplied."""
    return torch.autocast("cpu", enabled=False) if device.type == "cpu" else nullcontext()
