"""Queries, keys and values of a layer by one product instead of three (fused QKV).

To ask a GPU for three takes longer, at a small batch, than to do them, and so does what goes with each: a copy of
what it reads, two products back, sums. They are fused where weights are copied to bf16 in any case
(`trainers.engine.halves`), which lays the copies of the three one below the other. Gradients of what the three
read are then added up before they are rounded, not afterwards; a CPU, which would gain little, keeps them apart.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.packing import fused_attention
from trainers.engine.halves import Half
from trainers.engine.meter import FUSED

BIAS = "fused_bias"


def put_fusing(body: Any) -> None:
    """Have the self-attention of each layer of BERT's kind use fused projections, where it has some."""
    for layer in body.encoder.layer:
        attention = layer.attention.self
        attention.__class__ = _fusing(attention.__class__)


def fused_halves(attention: Any) -> list[Half]:
    """Copies of its projections as one, (3 · D, D) and (3 · D,); none where something of them is not trained."""
    three = (attention.query, attention.key, attention.value)
    if not all(one.requires_grad for layer in three for one in layer.parameters()):
        return []
    return [
        Half(attention, FUSED, [layer.weight for layer in three]),
        Half(attention, BIAS, [layer.bias for layer in three]),
    ]


@cache
def _fusing(kind: type) -> type:
    return type(kind.__name__, (_Fusing, kind), {})


class _Fusing(nn.Module):
    """What comes before transformers' own self-attention of BERT's kind, which runs packed."""

    def forward(self: Any, hidden_states: Tensor, *given: Any, **named: Any) -> tuple[Tensor, None]:
        if FUSED not in vars(self):
            return super().forward(hidden_states, *given, **named)
        mixed = fused_attention(
            self,
            F.linear(hidden_states, vars(self)[FUSED], vars(self)[BIAS]),
            heads=self.num_attention_heads,
            scaling=self.scaling,
            dropout=self.dropout.p if self.training else 0.0,
            layout=named["layout"],
        )
        return mixed.flatten(-2), None
