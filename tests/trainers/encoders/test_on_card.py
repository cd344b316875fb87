"""What an encoder does on a card in another way than on a CPU: on the device that SEMRAY_TEST_DEVICE names."""

from __future__ import annotations

import os

import pytest
import torch

from trainers.encoders.dropout import Site, dropout
from trainers.encoders.stacked_layers import _kept

DEVICE = torch.device(os.environ.get("SEMRAY_TEST_DEVICE", "cpu"))
pytestmark = pytest.mark.skipif(DEVICE.type == "cpu", reason="of a card: SEMRAY_TEST_DEVICE names one")
RATE = 0.1


def test_texts_with_a_stream_of_their_own_make_up_for_what_is_dropped_as_torch_does() -> None:
    """In float32, rounded once. A bfloat16 holds 1.109 for 1.111: all that is kept would be too small."""
    values = torch.randn(64, 64, dtype=torch.bfloat16)
    stream = torch.Generator(DEVICE).manual_seed(3)
    after = dropout(values.to(DEVICE), RATE, stream).cpu()
    kept = after != 0
    assert 0.8 < kept.float().mean() < 0.97
    assert torch.equal(after[kept], (values.float() * (1 / (1 - RATE))).bfloat16()[kept])


def test_so_do_encoders_of_a_stack() -> None:
    noise = _kept(Site(RATE).train(), torch.empty(64, 64, dtype=torch.bfloat16, device=DEVICE))
    assert noise is not None
    assert noise.dtype == torch.float32
    assert sorted(set(noise.cpu().flatten().tolist())) == [0.0, pytest.approx(1 / (1 - RATE), rel=1e-6)]
