"""From this machine's memory to the device, without waiting for either."""

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
