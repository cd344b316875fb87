"""Computes queries, keys and values of a layer by one matrix product instead of three (fused QKV).

At a small batch a GPU spends more time on launching three products, with their copies, gradients and sums, than on
computing them. They are fused only where weights are copied to bf16 anyway (`trainers.engine.bf16_copies`), which
concatenates the three copies. The gradients of the shared input are then summed before rounding instead of after.
A CPU would gain little and keeps three products.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.packing import fused_attention
from trainers.engine.bf16_copies import Bf16Copy
from trainers.engine.meter import FUSED

BIAS = "fused_bias"


def put_fusing(body: Any) -> None:
    """Make the self-attention of each BERT-like layer use fused projections whenever it has them."""
    for layer in body.encoder.layer:
        attention = layer.attention.self
        attention.__class__ = _fusing(attention.__class__)


def fused_copies(attention: Any) -> list[Bf16Copy]:
    """Concatenated copies of its projections, (3 · D, D) and (3 · D,); [] if one of them is not trained."""
    projections = (attention.query, attention.key, attention.value)
    if not all(weight.requires_grad for layer in projections for weight in layer.parameters()):
        return []
    return [
        Bf16Copy(attention, FUSED, [layer.weight for layer in projections]),
        Bf16Copy(attention, BIAS, [layer.bias for layer in projections]),
    ]


@cache
def _fusing(kind: type) -> type:
    return type(kind.__name__, (_Fusing, kind), {})


class _Fusing(nn.Module):
    """Overrides the forward of transformers' BERT-like self-attention, for packed texts with fused projections."""

    def forward(self: Any, hidden_states: Tensor, *given: Any, **named: Any) -> tuple[Tensor, None]:
        if FUSED not in vars(self):
            return super().forward(hidden_states, *given, **named)
        mixed = fused_attention(
            self,
            F.linear(hidden_states, vars(self)[FUSED], vars(self)[BIAS]),
            heads=self.num_attention_heads,
            scaling=self.scaling,
            dropout=self.dropout.p,
            layout=named["layout"],
            texts=named.get("texts"),
        )
        return mixed.flatten(-2), None
