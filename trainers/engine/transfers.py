"""Copies between the machine's memory and the device, without waiting for either."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

ALIGNED = 16  # bytes: where an array may begin among others, whatever it holds


def moved(array: np.ndarray, device: torch.device) -> Tensor:
    """Return the array as a tensor on a device. On a CPU the tensor shares the array's memory.

    A GPU copies it from page-locked memory while it computes; a copy from ordinary memory would wait for all work
    queued before.
    """
    rows = torch.from_numpy(array)
    return rows if device.type == "cpu" else rows.pin_memory().to(device, non_blocking=True)


def moved_together(arrays: Sequence[np.ndarray], device: torch.device) -> list[Tensor]:
    """`moved` for several arrays. To a GPU they go in one copy, as each costs the processor more than a kernel."""
    if device.type == "cpu":
        return [moved(array, device) for array in arrays]
    begins = [0, *accumulate(-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays)]
    held = torch.empty(begins[-1], dtype=torch.uint8, pin_memory=True)
    here = held.numpy()
    for array, begin in zip(arrays, begins, strict=False):
        here[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    there = held.to(device, non_blocking=True)
    kinds = [torch.from_numpy(np.empty(0, array.dtype)).dtype for array in arrays]
    return [
        there[begin : begin + array.nbytes].view(kind).view(array.shape)
        for array, kind, begin in zip(arrays, kinds, begins, strict=False)
    ]


class Arriving:
    """Numbers that are being copied from a device while it goes on computing.

    `read` waits for the work that they depend on, and not for work that was queued after them.
    """

    def __init__(self, numbers: Tensor) -> None:
        self._numbers, self._arrived = numbers, None
        if numbers.device.type != "cpu":
            self._numbers = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            self._arrived = torch.cuda.current_stream(numbers.device).record_event()

    def read(self) -> list[float]:
        """Return the numbers, a tensor of one dimension, as a list."""
        if self._arrived is not None:
            self._arrived.synchronize()
        found: list[float] = self._numbers.tolist()
        return found
