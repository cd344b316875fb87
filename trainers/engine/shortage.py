"""Errors for a device whose memory is full: the one place that tells them from other RuntimeErrors."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from corpora.store.errors import first_line
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.engine.world import Seat

# What shows it in its message alone: cuBLAS and cuDNN; and CUDA itself, as where a kernel's code, which is loaded
# at its first use, finds no place beside the memory that torch keeps.
LACKS = ("STATUS_ALLOC_FAILED", "CUDA error: out of memory")


class OutOfMemory(TrainerError):
    """A training does not fit into memory; the message says which part, and which settings would."""


class Shortage(Exception):
    """The device had no memory left; holds the first line of its message. Internal: callers catch OutOfMemory."""


@contextmanager
def raising_shortage() -> Iterator[None]:
    """Turn a lack of memory within the block into Shortage."""
    try:
        yield
    except RuntimeError as error:
        causes = list(_with_contexts(error))  # a CUDA graph whose capture ends so raises an error of its own
        lack = next((one for one in causes if _lacks_memory(one)), None)
        if lack is None:
            raise
        for one in causes:
            traceback.clear_frames(one.__traceback__)  # else its frames keep the failed step's tensors alive
        raise Shortage(first_line(lack)) from None


def _with_contexts(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those while which it was raised."""
    while error is not None:
        yield error
        error = error.__context__


def _lacks_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in LACKS)
    )


def give_back_memory() -> None:
    """Give the device back what this process keeps of its memory and has no use for."""
    gc.collect()  # frames of what failed may hold tensors
    torch.cuda.empty_cache()  # does nothing without a card


@contextmanager
def reporting_state_shortage(seat: Seat | None) -> Iterator[None]:
    """Turn a lack of memory within the block, which allocates weights or optimiser state, into OutOfMemory.

    Both stay from step to step, so the message proposes no smaller batch.
    """
    try:
        with raising_shortage():
            yield
    except Shortage as short:
        fewer = "ZeRO with more workers (resources.deepspeed.zero_stage and workers_per_run)"
        raise OutOfMemory(
            f"the device has no memory for the weights and the optimiser's state: {short}"
            f"\n  accepted: a smaller backbone, {fewer if seat is None else seat.lighter}, or more memory"
        ) from None
