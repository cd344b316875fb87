"""Unit vectors of any size; what has no direction is refused."""

import numpy as np
import pytest

from evaluators.metrics import vectors
from evaluators.metrics.vectors import aligned_cosines, cosine_distances, unit

ROWS = np.array([[3.0, 4.0], [-5.0, 12.0]])
UNIT = np.array([[0.6, 0.8], [-5 / 13, 12 / 13]])


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_length_is_one_at_any_size(scale):
    assert unit(ROWS * scale) == pytest.approx(UNIT)
    assert aligned_cosines(ROWS * scale, ROWS) == pytest.approx([1, 1])


def test_what_has_no_direction_is_refused():
    with pytest.raises(ValueError, match="row 1 has no direction"):
        unit(np.array([[1.0, 0.0], [0.0, 0.0]]))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"vectors: .* at 1, 0\n  accepted: finite numbers"):
            unit(np.array([[1.0, 0.0], [bad, 1.0]]))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_distances_of_pairs_are_one_less_their_cosine_in_blocks_of_any_size(count, monkeypatch):
    monkeypatch.setattr(vectors, "BLOCK", 3)
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(6, 5)).astype(np.float32)
    left, right = rng.integers(0, 6, size=(2, count))
    found = cosine_distances(rows, left, right)
    lengths = np.linalg.norm(rows.astype(float), axis=1)
    expected = [
        1 - rows[a].astype(float) @ rows[b] / (lengths[a] * lengths[b]) for a, b in zip(left, right, strict=True)
    ]
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    assert cosine_distances(rows, left, left).tolist() == [0] * count
