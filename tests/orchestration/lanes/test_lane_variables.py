"""What a lane's process finds in its environment."""

from __future__ import annotations

import pytest

from orchestration.lanes.lane import TOKENISING, variables_of


@pytest.mark.parametrize(
    ("threads", "gpus", "tokenising"), [(1, 0, 1), (6, 0, 6), (1, 1, TOKENISING), (1, 0.25, TOKENISING), (8, 1, 8)]
)
def test_beside_a_gpu_more_threads_tokenise_than_compute(threads: int, gpus: float, tokenising: int) -> None:
    found = variables_of(threads, gpus)
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == str(threads)
    assert found["RAYON_NUM_THREADS"] == str(tokenising)
    assert ("CUDA_VISIBLE_DEVICES" in found) == (not gpus)  # hidden from a lane without one
