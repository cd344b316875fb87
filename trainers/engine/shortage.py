"""Where the device has no memory left for a step: told apart from every other error in this one place."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from corpora.store.errors import first_line
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.engine.world import Seat


class OutOfMemory(TrainerError):
    """The card does not hold a training; the message says what of it, and what is accepted."""


class Shortage(Exception):
    """The device had no memory left: its own words, in one line. Who runs a step hears it, and nobody else."""


@contextmanager
def shortage_told() -> Iterator[None]:
    """Let a lack of memory within the block be a Shortage. Of cuBLAS and cuDNN the words alone tell it."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or "STATUS_ALLOC_FAILED" in str(error):
            traceback.clear_frames(error.__traceback__)  # whoever keeps the error keeps no tensor of what failed
            raise Shortage(first_line(error)) from None
        raise


@contextmanager
def state_told(seat: Seat | None) -> Iterator[None]:
    """Let a lack of memory within the block be an OutOfMemory, where weights and what the optimiser keeps of each
    are laid out. They stay from step to step: no smaller batch makes room for them.
    """
    try:
        with shortage_told():
            yield
    except Shortage as short:
        fewer = "ZeRO with more workers (resources.deepspeed.zero_stage and workers_per_run)"
        raise OutOfMemory(
            f"the device has no memory for the weights and the optimiser's state: {short}"
            f"\n  accepted: a smaller backbone, {fewer if seat is None else seat.lighter}, or more memory"
        ) from None
