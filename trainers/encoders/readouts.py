"""Readouts: from token states to one vector per text. Pure functions that never write into their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average of the unmasked token states. (B, T, D), (B, T) -> (B, D)."""
    weight = mask[..., None].to(hidden.dtype)  # (B, T, 1)
    return (hidden * weight).sum(1) / weight.sum(1)


def first(hidden: Tensor) -> Tensor:
    """State of the first token, [CLS] in BERT. (B, T, D) -> (B, D)."""
    return hidden[:, 0]


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Largest value of each dimension over the unmasked tokens. (B, T, D), (B, T) -> (B, D)."""
    return hidden.masked_fill(mask[..., None] == 0, -torch.inf).amax(1)


def last(hidden: Tensor, mask: Tensor) -> Tensor:
    """State of the last unmasked token, [SEP] in BERT. (B, T, D), (B, T) with padding on the right -> (B, D)."""
    return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]


def total(hidden: Tensor, mask: Tensor) -> Tensor:
    """Sum of the unmasked token states. (B, T, D), (B, T) -> (B, D)."""
    return hidden.masked_fill(mask[..., None] == 0, 0).sum(1)


def layer_mixture(logits: Tensor) -> Tensor:
    """Weights of the mixed layers: softmax of the logits, so positive and of sum 1. (K,) -> (K,)."""
    return logits.softmax(dim=-1)


def mixed(equation: str, weights: Tensor, layers: Tensor) -> Tensor:
    """The weighted sum over layers by this einsum equation, in the layers' precision.

    Autocast would compute it in bf16, whose eight binary digits cannot tell a weight of .2505 from .25.
    """
    with torch.autocast(layers.device.type, enabled=False):
        return torch.einsum(equation, weights.to(layers.dtype), layers)


def weighted(layers: Sequence[Tensor], mask: Tensor, logits: Tensor) -> Tensor:
    """Σ_k α_k mean(layer k) with α = softmax(logits). K × (B, T, D), (B, T), (K,) -> (B, D).

    Averaging tokens and mixing layers are both linear, so their order does not matter; tokens first is less work.
    """
    pooled = torch.stack([mean(layer, mask) for layer in layers])  # (K, B, D)
    return mixed("k,kbd->bd", layer_mixture(logits), pooled)


def gated(layers: Sequence[Tensor], mask: Tensor, gate: Callable[[Tensor], Tensor]) -> Tensor:
    """Σ_k α_k(x) mean(layer k) with α(x) = gate(mean of the last layer). K × (B, T, D), (B, T) -> (B, D).

    gate: (B, D) -> (B, K), weights of sum 1. The mean that it reads passes its gradient on.
    Source: Concept, section 4.2 (M2).
    """
    pooled = torch.stack([mean(layer, mask) for layer in layers])  # (K, B, D)
    return mixed("bk,kbd->bd", gate(pooled[-1]), pooled)
