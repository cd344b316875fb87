"""Where the device has no memory left for a step: told apart from every other error in this one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from corpora.store.errors import first_line
from trainers.errors import TrainerError


class OutOfMemory(TrainerError):
    """The card does not hold a step; the message says what it holds."""


class Shortage(Exception):
    """The device had no memory left: its own words, in one line. Who runs a step hears it, and nobody else."""


@contextmanager
def shortage_told() -> Iterator[None]:
    """Let a lack of memory within the block be a Shortage. Of cuBLAS and cuDNN the words alone tell it."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or "STATUS_ALLOC_FAILED" in str(error):
            raise Shortage(first_line(error)) from None
        raise
