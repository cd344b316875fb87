"""Arrays that go to a device together, on the one that SEMRAY_TEST_DEVICE names."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from trainers.engine.transfers import moved, moved_together

DEVICE = torch.device(os.environ.get("SEMRAY_TEST_DEVICE", "cpu"))
DRAWN = np.random.default_rng(0)
ARRAYS = [
    DRAWN.random((3, 5)) < 0.5,
    DRAWN.integers(0, 99, 7),
    np.zeros((0, 4), np.int64),
    DRAWN.random((2, 3, 1)).astype(np.float32),
    DRAWN.integers(0, 99, 9).astype(np.int32)[::2],
    DRAWN.integers(0, 99, (4, 4))[:, 1],
]


@pytest.mark.parametrize("count", range(len(ARRAYS) + 1))
def test_arrays_are_together_on_card_what_each_is_alone(count: int) -> None:
    together = moved_together(ARRAYS[:count], DEVICE)
    assert len(together) == count
    for found, array in zip(together, ARRAYS, strict=False):
        alone = moved(np.ascontiguousarray(array), DEVICE)
        assert (found.device, found.dtype, found.shape) == (alone.device, alone.dtype, alone.shape)
        np.testing.assert_array_equal(found.cpu().numpy(), array)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="of a CPU")
def test_on_a_cpu_the_memory_is_shared() -> None:
    array = np.zeros(3)
    (found, _) = moved_together([array, array[:1]], DEVICE)
    array[1] = 5.0
    assert found.tolist() == [0.0, 5.0, 0.0]
