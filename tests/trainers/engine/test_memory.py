"""What a step frees, the next one gets without asking the system; and the system gets it when training ends."""

from __future__ import annotations

import ctypes
import resource

import pytest
import torch

from trainers.engine.memory import kept_memory


def faults() -> int:
    """Pages that a tensor of 64 MiB, filled and dropped, has asked the system for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_second_tensor_takes_the_place_of_the_first_until_training_ends() -> None:
    with kept_memory():
        faults()
        assert faults() < 100
    assert faults() > 0
