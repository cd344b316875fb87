"""What `tests/trainers/encoders/test_short_texts.py` runs: the kernel for short texts, interpreted, in float32.

TRITON_INTERPRET=1 python -m tests.interpreted_kernel
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trainers.encoders.packed_texts import PackedTexts
from trainers.encoders.short_texts import short_attention

CPU = torch.device("cpu")
SHAPES = ((3, 16, (1, 5, 20)), (2, 8, (3, 30, 7, 0)), (2, 24, (40, 2)), (1, 64, (64,)))  # heads, numbers, lengths


def main() -> None:
    for heads, width, lengths in SHAPES:
        check_attention(heads, width, lengths)
    check_gradients_under_dropout()
    check_share_that_is_dropped()


def check_attention(heads: int, width: int, lengths: Sequence[int]) -> None:
    rows = made(heads, width, sum(lengths))
    found = short_attention(rows, PackedTexts.of(np.array(lengths), CPU), scaling=width**-0.5, dropout=0.0)
    exact = one_by_one(rows, lengths, width**-0.5)
    gradient = torch.randn_like(exact)
    assert torch.allclose(found, exact, atol=1e-5)
    ours, theirs = (torch.autograd.grad(mixed, rows, gradient)[0] for mixed in (found, exact))
    assert torch.allclose(ours, theirs, atol=1e-5)


def check_gradients_under_dropout() -> None:
    """The backward pass drops what the forward pass has dropped: the slope is the one between two points."""
    rows, way, weights = made(2, 16, 13), torch.randn(13, 3, 2, 16), torch.randn(13, 2, 16)
    texts = PackedTexts.of(np.array([4, 9]), CPU)

    def loss(at: Tensor) -> Tensor:
        torch.manual_seed(7)
        return (short_attention(at, texts, scaling=0.25, dropout=0.3) * weights).sum()

    slope = (torch.autograd.grad(loss(rows), rows)[0] * way).sum()
    step = 1e-2
    between = (loss(rows + step * way) - loss(rows - step * way)).detach() / (2 * step)
    assert torch.allclose(slope, between, rtol=1e-2), (slope, between)


def check_share_that_is_dropped() -> None:
    """Keys that are all alike give each a chance of 1 / T: what is mixed counts those that are left."""
    length, width = 20, 32
    rows = torch.zeros(40 * length, 3, 2, width)
    rows[:, 2] = torch.eye(length, width).repeat(40, 1)[:, None]
    mixed = short_attention(rows, PackedTexts.of(np.full(40, length), CPU), scaling=1.0, dropout=0.25)
    left = mixed[..., :length] * length
    assert sorted({round(one, 3) for one in left.unique().tolist()}) == [0.0, 1.333]
    assert abs(float((left == 0).float().mean()) - 0.25) < 0.01
    heads, texts = left.transpose(0, 1).unflatten(1, (40, length)).ne(0).flatten(2).unbind(0)
    assert (heads != texts).float().mean() > 0.3  # each head draws its own
    assert len({tuple(row.tolist()) for row in heads}) == 40  # and each text


def made(heads: int, width: int, count: int) -> Tensor:
    return torch.randn(count, 3, heads, width, generator=torch.Generator().manual_seed(count)).requires_grad_()


def one_by_one(rows: Tensor, lengths: Sequence[int], scaling: float) -> Tensor:
    mixed = []
    for own in rows.split(list(lengths)):
        query, key, value = own.permute(1, 2, 0, 3)
        mixed.append(((query @ key.transpose(1, 2) * scaling).softmax(-1) @ value).transpose(0, 1))
    return torch.cat(mixed)


if __name__ == "__main__":
    main()
