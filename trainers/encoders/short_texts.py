"""Attention within short texts on a card, by a kernel of our own: each program computes a text and a head.

Flash attention computes tiles of 128 queries and as many keys; a sentence has some twenty, so that nearly all of
a tile is wasted (`benchmarks/gpu.py`, section `attention`). Here a text's queries, keys and values lie in a
program's registers. The backward pass computes the scores anew, and draws the same dropout. Each gradient is one
sum, in one order.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.errors import TritonError

if TYPE_CHECKING:
    from trainers.encoders.packed_texts import PackedTexts

# Raised where Triton cannot compile: no compiler or driver, one that fails, a card that it does not know.
CANNOT_COMPILE = (RuntimeError, OSError, SubprocessError, TritonError)
LONGEST = 64  # tokens of a text
LEAST = tl.constexpr(16)  # rows and columns of a product, at least
FAR = tl.constexpr(-1.0e30)  # a score whose exponential is 0 beside any other, without being infinite
ROUNDS = tl.constexpr(
    7
)  # of Philox: the fewest at which no test tells its numbers from chance (Salmon et al. 2011)


def short_attention(rows: Tensor, texts: PackedTexts, *, scaling: float, dropout: float) -> Tensor:
    """rows (M, 3, H, d): queries, keys and values of texts of at most LONGEST tokens. -> (M, H, d)."""
    mixed: Tensor = _Short.apply(rows, texts, scaling, dropout)
    return mixed


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, texts: PackedTexts, scaling: float, dropout: float) -> Tensor:
        rows = rows.contiguous()
        seed = torch.randint(2**62, (1,), device=rows.device) if dropout else texts.begins
        mixed = rows.new_empty(len(rows), *rows.shape[2:])
        _run(_forward, (rows, mixed), rows, texts, seed, scaling, dropout)
        ctx.save_for_backward(rows, seed)
        ctx.given = texts, scaling, dropout
        return mixed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (rows, seed), (texts, scaling, dropout) = ctx.saved_tensors, ctx.given
        of_rows = torch.empty_like(rows)
        _run(_backward, (rows, gradient.contiguous(), of_rows), rows, texts, seed, scaling, dropout)
        return of_rows, None, None, None


def _run(
    kernel: Any,
    tensors: tuple[Tensor, ...],
    rows: Tensor,
    texts: PackedTexts,
    seed: Tensor,
    scaling: float,
    dropout: float,
) -> None:
    _, _, heads, width = rows.shape
    block = max(LEAST.value, triton.next_power_of_2(texts.longest))
    with torch.cuda.device_of(rows):  # Triton starts kernels on the current device
        kernel[(len(texts.begins) - 1, heads)](
            *tensors,
            texts.begins,
            seed,
            scaling,
            dropout,
            HEADS=heads,
            WIDTH=width,
            TOKENS=block,
            NUMBERS=max(LEAST.value, triton.next_power_of_2(width)),
            DROPS=dropout > 0,
            num_warps=1 if block <= 32 else 4,
        )


@triton.jit
def _places(begins, HEADS: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr, NUMBERS: tl.constexpr):
    """Of this program's text and head: which of TOKENS it has, where in a row (M, H, d) its numbers lie, and which
    of those there are; and how far queries, keys and values of its tokens lie from there in (M, 3, H, d)."""
    begin, end = tl.load(begins + tl.program_id(0)), tl.load(begins + tl.program_id(0) + 1)
    tokens, numbers = begin + tl.arange(0, TOKENS), tl.arange(0, NUMBERS)
    there = tokens < end
    places = tokens[:, None] * (HEADS * WIDTH) + tl.program_id(1) * WIDTH + numbers[None, :]
    return there, places, there[:, None] & (numbers < WIDTH)[None, :], tokens[:, None] * (2 * HEADS * WIDTH)


@triton.jit
def _read(first, held, part):
    """Queries, keys and values, (TOKENS, NUMBERS) each; `part` numbers lie between those of one token."""
    return tl.load(first, held, 0.0), tl.load(first + part, held, 0.0), tl.load(first + 2 * part, held, 0.0)


@triton.jit
def _chances(query, key, there, scaling):
    """Softmax of the scores. -> (TOKENS, TOKENS) float32."""
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scaling
    scores = tl.where(there[None, :], scores, FAR)
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit
def _kept(seed, dropout, HEADS: tl.constexpr, TOKENS: tl.constexpr):
    """What dropout leaves of the chances, and by what it scales that. -> (TOKENS, TOKENS) float32."""
    cells = tl.arange(0, TOKENS)[:, None] * TOKENS + tl.arange(0, TOKENS)[None, :]
    number = tl.program_id(0) * HEADS + tl.program_id(1)
    drawn = tl.rand(tl.load(seed), number * (TOKENS * TOKENS) + cells, ROUNDS)
    return tl.where(drawn >= dropout, 1.0 / (1.0 - dropout), 0.0)


@triton.jit
def _forward(
    rows,
    mixed,
    begins,
    seed,
    scaling,
    dropout,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
    NUMBERS: tl.constexpr,
    DROPS: tl.constexpr,
):
    there, places, held, ahead = _places(begins, HEADS, WIDTH, TOKENS, NUMBERS)
    query, key, value = _read(rows + places + ahead, held, HEADS * WIDTH)
    chances = _chances(query, key, there, scaling)
    if DROPS:
        chances *= _kept(seed, dropout, HEADS, TOKENS)
    out = tl.dot(chances.to(value.dtype), value, input_precision="ieee")
    tl.store(mixed + places, out.to(value.dtype), held)


@triton.jit
def _backward(
    rows,
    gradient,
    of_rows,
    begins,
    seed,
    scaling,
    dropout,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
    NUMBERS: tl.constexpr,
    DROPS: tl.constexpr,
):
    there, places, held, ahead = _places(begins, HEADS, WIDTH, TOKENS, NUMBERS)
    query, key, value = _read(rows + places + ahead, held, HEADS * WIDTH)
    of_mixed = tl.load(gradient + places, held, 0.0)
    chances = _chances(query, key, there, scaling)
    of_chances = tl.dot(of_mixed, tl.trans(value), input_precision="ieee")
    left = chances
    if DROPS:
        kept = _kept(seed, dropout, HEADS, TOKENS)
        left = chances * kept
        of_chances *= kept
    of_value = tl.dot(tl.trans(left).to(value.dtype), of_mixed, input_precision="ieee")
    of_scores = chances * (of_chances - tl.sum(chances * of_chances, 1)[:, None]) * scaling
    of_scores = of_scores.to(value.dtype)
    of_query = tl.dot(of_scores, key, input_precision="ieee")
    of_key = tl.dot(tl.trans(of_scores), query, input_precision="ieee")
    tl.store(of_rows + places + ahead, of_query.to(value.dtype), held)
    tl.store(of_rows + places + ahead + HEADS * WIDTH, of_key.to(value.dtype), held)
    tl.store(of_rows + places + ahead + 2 * HEADS * WIDTH, of_value.to(value.dtype), held)
