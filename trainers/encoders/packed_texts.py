"""Where the texts of a packed row begin, on its device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainers.engine.transfers import moved


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """The texts of a pass. begins (N + 1,) int32: where each begins in the row, and where the last one ends.

    longest: tokens of the longest text, or more.
    """

    begins: Tensor
    longest: int

    @staticmethod
    def of(lengths: np.ndarray, device: torch.device) -> PackedTexts:
        """lengths (N,): tokens of each text."""
        begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return PackedTexts(moved(begins, device), int(lengths.max()))
