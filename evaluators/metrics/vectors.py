"""Unit vectors and cosines of aligned rows, for every task that compares embeddings."""

from __future__ import annotations

import numpy as np

BLOCK = 4096  # pairs whose vectors are in memory twice
ROUNDING = 1e-12  # of a cosine in float64


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, in the precision given. (N, D) -> (N, D).

    ValueError when a row is all zeros or holds a value that is not finite.
    """
    check_finite("vectors", vectors)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (N, 1)
    if not ((lengths > 0) & np.isfinite(lengths)).all():  # a row of zeros, or one whose squares are no numbers
        peaks = np.max(np.abs(vectors), axis=1, keepdims=True)
        if not (peaks > 0).all():
            raise ValueError(f"row {int(np.argmin(peaks > 0))} has no direction: its length is not above 0")
        return unit(vectors / peaks)
    return vectors / lengths


def check_finite(what: str, values: np.ndarray) -> None:
    """Raise ValueError that names the first value that is no finite number."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(f"{what}: {values[place]} at {', '.join(map(str, place))}\n  accepted: finite numbers")


def aligned_cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of row i of left with row i of right, in float64. (N, D), (N, D) -> (N,)."""
    return np.einsum("nd,nd->n", unit(left.astype(np.float64)), unit(right.astype(np.float64)))


def cosine_distances(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """1 - cosine of row left[i] with row right[i]. (N, D), (M,), (M,) -> (M,) float32.

    In float32, which holds all that an encoder says: equal rows are at 0 exactly, not at 0 within rounding.
    """
    starts = range(0, max(1, len(left)), BLOCK)
    blocks = [(left[start : start + BLOCK], right[start : start + BLOCK]) for start in starts]
    cosines = np.concatenate([aligned_cosines(vectors[a], vectors[b]) for a, b in blocks])
    return np.float32(1) - cosines.astype(np.float32)
