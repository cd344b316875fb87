"""Unit vectors and cosines of aligned rows, for every task that compares embeddings."""

from __future__ import annotations

import numpy as np


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, in the precision given. (N, D) -> (N, D). ValueError when a row is all zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (N, 1)
    if not (lengths > 0).all():
        raise ValueError(f"row {int(np.argmin(lengths > 0))} has no direction: its length is not above 0")
    return vectors / lengths


def aligned_cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of row i of left with row i of right, in float64. (N, D), (N, D) -> (N,)."""
    return np.einsum("nd,nd->n", unit(left.astype(np.float64)), unit(right.astype(np.float64)))
