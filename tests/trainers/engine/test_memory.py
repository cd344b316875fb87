"""What a step frees, the next one gets without asking the system; and the system gets it when training ends."""

from __future__ import annotations

import ctypes
import resource

import pytest
import torch

from trainers.engine.memory import keeping_memory


def faults(megabytes: int) -> int:
    """Pages that a tensor, filled and dropped, has asked the system for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(megabytes * 2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_second_tensor_takes_the_place_of_the_first_until_training_ends() -> None:
    """A smaller one: torch asks for aligned memory, and glibc may want more room for that than a twin leaves."""
    with keeping_memory():
        faults(64)
        assert faults(32) < 32 * 256 / 4  # of its pages; all, were they the system's
    assert faults(64) > 0
    assert faults(48) >= 48 / 2  # what is large is the system's again, in its largest pages of 2 MB at least
    assert faults(40) >= 40 / 2
