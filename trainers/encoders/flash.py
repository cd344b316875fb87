"""Attention within each text of a packed row by one kernel, in half precision on a card.

It needs no rectangles, and so no gathers into them, no padding, and no scores in the card's memory. Texts of some
length are attended to by torch's flash attention: it offers dropout through nested tensors alone, so its own
operators are called, without their checks. Short texts have their own kernel (`trainers.encoders.short_texts`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpora.store.errors import kind_and_first_line
from trainers.encoders.packed_texts import PackedTexts

ATEN = torch.ops.aten
HALF = (torch.bfloat16, torch.float16)
SINCE = (8, 0)  # the oldest cards' compute capability for which torch builds these kernels
# Numbers of a head, which are a multiple of EIGHT. Of wider ones few cards know a backward pass with dropout.
WIDEST, EIGHT = 192, 8
# Tokens of a short text. Flash attention reads at least so many keys at a time, so that a text of no more has one
# gradient for each query. Longer texts have several, which torch adds up in one order only if determinism is
# enforced, and somewhat slower.
SHORT = 64
NARROW = 64  # numbers of a head for which the kernel for short texts has been tried
log = logging.getLogger(__name__)


def attends(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Whether rows of this device and precision, in heads of this width, are attended to here."""
    if device.type != "cuda" or dtype not in HALF:
        return False
    return width <= WIDEST and width % EIGHT == 0 and _recent(device)


@cache
def _recent(device: torch.device) -> bool:
    """Whether this build of torch has flash attention, and for this card."""
    built = torch.backends.cuda.is_flash_attention_available()
    return built and torch.cuda.get_device_capability(device) >= SINCE


@cache
def compiles(device: torch.device) -> bool:
    """Whether Triton, which torch's build for CUDA brings along, compiles kernels here; else it is told once.

    It needs a C compiler, Python's headers, and to know the card.
    """
    try:
        from trainers.encoders.short_texts import CANNOT_COMPILE, short_attention
    except ImportError as error:
        return _not(error)
    try:
        row = torch.zeros(1, 3, 1, NARROW, dtype=torch.bfloat16, device=device)
        short_attention(row, PackedTexts.of(np.ones(1, np.int64), device), scaling=1.0, dropout=0.0)
    except torch.OutOfMemoryError:
        raise  # of memory there may be more later
    except CANNOT_COMPILE as error:
        return _not(error)
    return True


def _not(error: Exception) -> bool:
    told = kind_and_first_line(error)
    log.warning("Triton compiles no kernels (%s): attention within short texts takes several times as long", told)
    return False


def attention_at_once(rows: Tensor, texts: PackedTexts, *, scaling: float, dropout: float) -> Tensor:
    """rows (M, 3, H, d): queries, keys and values, and every row of a text. -> (M, H, d).

    dropout: the rate; 0 outside of training.
    """
    if texts.longest <= SHORT and rows.shape[-1] <= NARROW and compiles(rows.device):
        from trainers.encoders.short_texts import short_attention

        return short_attention(rows, texts, scaling=scaling, dropout=dropout)
    mixed: Tensor = _Flash.apply(rows, texts, scaling, dropout)
    return mixed


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, texts: PackedTexts, scaling: float, dropout: float) -> Tensor:
        begins, longest = texts.begins, texts.longest
        mixed, sums, drawn, unused, _ = ATEN._flash_attention_forward(
            *rows.unbind(1), begins, begins, longest, longest, dropout, False, False, scale=scaling
        )
        ctx.save_for_backward(rows, mixed, sums, drawn, unused)
        ctx.given = texts, scaling, dropout
        return mixed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (texts, scaling, dropout), (rows, mixed, sums, drawn, unused) = ctx.given, ctx.saved_tensors
        begins, longest = texts.begins, texts.longest
        given = (gradient, *rows.unbind(1), mixed, sums, begins, begins, longest, longest, dropout, False)
        with _in_one_order(longest):
            each = ATEN._flash_attention_backward(*given, drawn, unused, scale=scaling)
        return torch.stack(each, 1), None, None, None


@contextmanager
def _in_one_order(longest: int) -> Iterator[None]:
    """Enforce one order of sums where there are several. Elsewhere torch would warn of what cannot happen."""
    enforced = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(enforced and longest > SHORT)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(enforced, warn_only=warns)
