"""What a masked language model makes of some tokens of many sentences, none of them padded.

    unpad(model)                                            # once
    states = states_at(model, read, attended, rows, columns)  # (M, D)

But for attention a transformer treats tokens one by one, so sentences run one after another as one row; attention
cuts it into stretches of sentences of one length. Behind a layer's attention no token sees another: the last layer
goes on with the masked ones alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainers.encoders.packing import PACKED, first_position
from trainers.engine.transfers import moved

ATTENTION = "semray_stretches"


class Stretch(NamedTuple):
    """Consecutive sentences of one length: tokens `begin` to `begin` + `sentences` · `length` of the row."""

    begin: int
    sentences: int
    length: int


def unpad(model: Any) -> None:
    """Let a model of BERT's modules read sentences in a row, and nothing else. Others stay as they are."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every number of sentences of a length
    if model.config.model_type in PACKED:
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, attention)
        model.set_attn_implementation(ATTENTION)


def states_at(model: Any, read: np.ndarray, attended: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """Last-layer states of M tokens, (M, D), by their places (M,) among the ids.

    read (B, T) int64: ids; attended (B, T) bool: a sentence, from its first column on.
    """
    body, device, kind = model.base_model, model.device, model.config.model_type
    if kind not in PACKED:
        mask = None if attended.all() else moved(attended.astype(np.int64), device)
        states: Tensor = body(input_ids=moved(read, device), attention_mask=mask).last_hidden_state
        return states[moved(rows, device), moved(columns, device)]
    lengths, first = attended.sum(1), first_position(model.config)
    tokens = (lengths.cumsum() - lengths)[rows] + columns
    with _taking(moved(tokens, device), body.encoder.layer[-1].attention.output):
        states = body(
            input_ids=moved(read[attended], device)[None],
            position_ids=moved(first + np.nonzero(attended)[1], device)[None],
            stretches=stretches(lengths),
        ).last_hidden_state
    return states[0]


def stretches(lengths: np.ndarray) -> list[Stretch]:
    """Of sentences that stand one after another. (B,)"""
    found, begin = [], 0
    for length, same in groupby(lengths.tolist()):
        found.append(Stretch(begin, len(list(same)), length))
        begin += found[-1].sentences * length
    return found


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    stretches: Sequence[Stretch],
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention within each sentence of a row. query, key, value (1, H, M, d) -> (1, M, H, d)."""
    parts = []
    for begin, sentences, length in stretches:
        q, k, v = (
            one[0, :, begin : begin + sentences * length].unflatten(1, (sentences, length)).transpose(0, 1)
            for one in (query, key, value)
        )  # (sentences, H, length, d) each
        mixed = F.scaled_dot_product_attention(q, k, v, scale=scaling)
        parts.append(mixed.transpose(1, 2).flatten(0, 1))
    return torch.cat(parts)[None], None


@contextmanager
def _taking(tokens: Tensor, module: Any) -> Iterator[None]:
    """A module that is given these tokens (M,) of a row alone for a while. (1, T, D) arguments -> (1, M, D)."""
    hook = module.register_forward_pre_hook(lambda _, given: tuple(one[:, tokens] for one in given))
    try:
        yield
    finally:
        hook.remove()
