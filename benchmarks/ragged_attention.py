"""Attention within each text of a packed row by torch's kernels for ragged sequences, to be measured beside ours.

    with ragged():
        encoder(tokens)  # one that runs packed

torch chooses the kernel (torch/nested/_internal/sdpa.py): on a card flash attention in bf16 and memory-efficient
attention in fp32, on a CPU products of one text after another. `torch.nn.attention.varlen` calls the same flash
kernel, but without dropout and on a card alone.

Forward, the kernels of a card are deterministic; backward, neither is unless
torch.use_deterministic_algorithms(True) asks for it. With warn_only=True, which runs on a card have, torch warns
once, naming the kernel, and goes on (aten/src/ATen/native/transformers/cuda/attention_backward.cu). What flash
attention adds up in any order is the gradient of a query over blocks of keys (Dao-AILab/flash-attention, issue
988), of 128 keys for heads of 32 or 64 numbers: shorter texts should have no order to differ in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders import packing
from trainers.encoders.packing import Rectangle


@contextmanager
def ragged() -> Iterator[None]:
    """For a while, encoders that run packed attend in this way: under the name by which they know that they do."""
    from transformers import AttentionInterface

    AttentionInterface.register(packing.ATTENTION, ragged_attention)
    try:
        yield
    finally:
        packing.register()


def ragged_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    dropout: float = 0.0,
    layout: Sequence[Rectangle],
    **_: Any,
) -> tuple[Tensor, None]:
    """As `packed_attention`, of one dropout rate for all texts. query, key, value (1, H, M, d) -> (1, M, H, d)."""
    assert all(area.dropped is None for area in layout)
    offsets, longest = _texts(tuple(layout))
    q, k, v = (
        torch.nested.nested_tensor_from_jagged(
            rows.squeeze(0).transpose(0, 1), offsets, min_seqlen=1, max_seqlen=longest
        ).transpose(1, 2)
        for rows in (query, key, value)
    )
    rate = dropout if module.training else 0.0
    mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, scale=scaling)  # N texts of (H, length, d)
    return mixed.transpose(1, 2).values()[None], None


@lru_cache(maxsize=1)  # all layers of a pass have the same texts
def _texts(layout: tuple[Rectangle, ...]) -> tuple[Tensor, int]:
    """Where each text of a pass begins and the last one ends, (N + 1,), and the length of the longest."""
    lengths = torch.cat([area.mask.sum(1) for area in layout])
    return F.pad(lengths.cumsum(0), (1, 0)), max(area.mask.shape[1] for area in layout)
