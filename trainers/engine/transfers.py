"""Between this machine's memory and the device, without waiting for either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    import numpy as np


def moved(array: np.ndarray, device: torch.device) -> Tensor:
    """The array on a device. On a CPU it shares the array's memory.

    To a GPU it goes from page-locked memory beside what the GPU is at: a copy from ordinary memory would wait for
    all that was asked for before.
    """
    rows = torch.from_numpy(array)
    return rows if device.type == "cpu" else rows.pin_memory().to(device, non_blocking=True)


class Arriving:
    """Numbers on their way from a device, which goes on meanwhile.

    To read them waits for what they are made of, and for nothing that the device was asked for after them.
    """

    def __init__(self, numbers: Tensor) -> None:
        self._numbers, self._arrived = numbers, None
        if numbers.device.type != "cpu":
            self._numbers = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            self._arrived = torch.cuda.current_stream(numbers.device).record_event()

    def read(self) -> list[float]:
        """A list of the numbers, which have one dimension."""
        if self._arrived is not None:
            self._arrived.synchronize()
        found: list[float] = self._numbers.tolist()
        return found
