"""Numbers of a sentence: an independent reading of SplitMix64 in Python's integers, and fixed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.san.uniforms import sid_of, uniforms_at

WHOLE = 2**64
COORDINATES = st.integers(0, WHOLE - 1)


def plainly(seed: int, *coordinates: int) -> float:
    def mix(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) % WHOLE
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % WHOLE
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % WHOLE
        return x ^ (x >> 31)

    mixed = mix(seed)
    for coordinate in coordinates:
        mixed = mix(mixed ^ coordinate)
    return (mixed >> 11) * 2.0**-53


def drawn(seed: int, sid: int, iteration: int, position: int, lane: int = 0) -> float:
    positions = np.array([position], np.uint64)
    return uniforms_at(seed, np.uint64(sid), np.uint64(iteration), positions, np.uint64(lane)).item()


@pytest.mark.parametrize(
    ("seed", "sid", "iteration", "position", "expected"),
    [
        (0, 0, 0, 1, 0.17732475569272),
        (0, 0, 0, 2, 0.19953160105232393),
        (0, 0, 1, 1, 0.18816672788274214),
        (7, 123456, 3, 5, 0.11383258496414828),
    ],
)
def test_known_values(seed, sid, iteration, position, expected):
    assert drawn(seed, sid, iteration, position) == pytest.approx(expected, abs=1e-15)


@given(COORDINATES, COORDINATES, st.integers(0, 20), st.integers(0, 200), st.integers(0, 20))
def test_equals_plain_integers(seed, sid, iteration, position, lane):
    assert drawn(seed, sid, iteration, position, lane) == plainly(seed, sid, iteration, position, lane)


def test_sid_is_the_head_of_sha1():
    """SHA-1 of "abc" is a9993e364706816a... (FIPS 180)."""
    assert sid_of("abc") == 0xA9993E364706816A
