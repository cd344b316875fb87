"""Uniform numbers that depend only on a sentence and a place in it, and not on the order of work.

    positions = np.arange(1, 4, dtype=np.uint64)
    u = uniforms_at(seed, np.uint64(sid_of("He left.")), np.uint64(0), positions, lane=np.uint64(0))

A counter passes through the finaliser of SplitMix64 once per coordinate. Lane 0 decides masks; lanes from 1 are
the noise of sampled fillings, one lane per rank.
"""

from __future__ import annotations

import hashlib

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def sid_of(text: str) -> int:
    """The number of a sentence: the first 8 bytes (big-endian) of SHA-1 of its UTF-8."""
    return int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:8], "big")


def uniforms_at(
    seed: int,
    sids: np.ndarray | np.uint64,
    iterations: np.ndarray | np.uint64,
    positions: np.ndarray,
    lane: np.uint64,
) -> np.ndarray:
    """Numbers in [0, 1), float64, for coordinates of any shapes that broadcast, all uint64.

    sids: of `sid_of`; positions: of a sentence's tokens, counted from 1.
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        mixed = _mix(np.uint64(seed))
        for coordinate in (sids, iterations, positions, lane):
            mixed = _mix(mixed ^ coordinate)
        return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def _mix(x: np.ndarray | np.uint64) -> np.ndarray | np.uint64:
    """SplitMix64's finaliser, with the golden-ratio increment before it."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
