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
        return PackedTexts(moved(begins_of(lengths), device), int(lengths.max()))


def begins_of(lengths: np.ndarray) -> np.ndarray:
    """`PackedTexts.begins` of texts with these lengths. (N,) -> (N + 1,) int32."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
