"""Limits the shapes of matrix products of packed encoders in bf16 on a CPU.

oneDNN, which multiplies there, compiles code for every new shape, and the number of tokens differs in nearly every
pass. Here rows of zeros bring the inputs of linear layers to a multiple of EVEN, so that few shapes serve all
passes. Shapes in attention differ too much for that: its small products run in float32
(`benchmarks/training_throughput.py`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EVEN = 32  # rows


class EvenLinear(nn.Linear):
    """A linear layer with torch's results for (..., M, I); under autocast on a CPU it multiplies padded rows."""

    def forward(self, input: Tensor) -> Tensor:
        if input.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        rows = input.flatten(0, -2)
        count = len(rows)
        rows = F.pad(rows.to(torch.get_autocast_dtype("cpu")), (0, 0, 0, -count % EVEN))
        return super().forward(rows)[:count].view(*input.shape[:-1], -1)


def put_even(body: nn.Module) -> None:
    """Turn each of torch's linear layers into an EvenLinear."""
    for module in body.modules():
        if type(module) is nn.Linear:
            module.__class__ = EvenLinear


def in_attention(states: Tensor) -> Tensor:
    """Convert queries, keys or values for attention: on a CPU from bf16 to float32."""
    half = states.device.type == "cpu" and states.dtype == torch.bfloat16
    return states.float() if half else states


def attending(device: torch.device) -> AbstractContextManager[object]:
    """Switch autocast off on a CPU, so that attention multiplies in its operands' precision."""
    return torch.autocast("cpu", enabled=False) if device.type == "cpu" else nullcontext()
