"""Unit vectors of any size; what has no direction is refused."""

import numpy as np
import pytest

from evaluators.metrics.vectors import aligned_cosines, unit

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
