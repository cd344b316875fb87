"""Copies between the machine's memory and the device, without waiting for either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    import numpy as np


def moved(array: np.ndarray, device: torch.device) -> Tensor:
    """Return the array as a tensor on a device. On a CPU the tensor shares the array's memory.

    A GPU copies it from page-locked memory while it computes; a copy from ordinary memory would wait for all work
    queued before.
    """
    rows = torch.from_numpy(array)
    return rows if device.type == "cpu" else rows.pin_memory().to(device, non_blocking=True)


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
