"""Do like texts lie close, and do all texts spread over the sphere? Both smaller is better.

Source: Wang and Isola 2020, equations for α = 2 and t = 2; on sentences as in SimCSE: like texts are STS-B pairs
with gold above 4, all texts are STS-B's.
"""

from __future__ import annotations

import math

import numpy as np

from evaluators.metrics.vectors import unit

BLOCK = 1024  # rows whose cosines with all others are in memory at once


def squared_distances(cosines: np.ndarray) -> np.ndarray:
    """||x - y||² of unit vectors from their cosines, whose mean over like pairs is alignment. (N,) -> (N,)."""
    return 2.0 - 2.0 * cosines


def uniformity(vectors: np.ndarray) -> float:
    """log of the mean of exp(-2 ||x - y||²) over all pairs of different rows, at length 1. (N, D) -> [-8, 0].

    ValueError with fewer than two rows.
    """
    if len(vectors) < 2:
        raise ValueError("uniformity needs two rows")
    rows = unit(vectors.astype(np.float64))
    count = len(rows)
    total = sum(
        np.exp(-2.0 * squared_distances(rows[start : start + BLOCK] @ rows.T)).sum()
        for start in range(0, count, BLOCK)
    )
    return math.log((total - count) / (count * (count - 1)))  # a row with itself adds exp 0
