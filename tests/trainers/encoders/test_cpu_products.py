"""Linear layers whose products have few shapes, against torch's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from tests.tiny import tiny_backbone
from trainers.encoders.cpu_products import EVEN, EvenLinear, in_attention, put_even
from trainers.encoders.encoder import Encoder

TEXTS = [" ".join(["word"] * (1 + number % 9)) for number in range(23)]


def both() -> tuple[nn.Linear, nn.Linear]:
    """Torch's layer and an even one of the same weights."""
    torch.manual_seed(3)
    usual, even = nn.Linear(24, 40), nn.Linear(24, 40)
    even.load_state_dict(usual.state_dict())
    put_even(even)
    assert type(even) is EvenLinear
    return usual, even


@pytest.mark.parametrize("shape", [(1, 5, 24), (1, EVEN, 24), (EVEN + 1, 24), (2, 3, 24), (1, 1, 24)])
def test_gives_what_torch_gives_in_bf16_and_the_same_gradients(shape: tuple[int, ...]) -> None:
    given = torch.randn(shape)
    found = []
    for layer in both():
        rows = given.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(rows)
        assert out.dtype == torch.bfloat16
        learnt = torch.autograd.grad(out.float().square().sum(), (rows, layer.weight, layer.bias))
        found.append((out.detach().float(), *learnt))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2 * float(one.abs().max()))


def test_is_torchs_layer_to_the_last_digit_without_autocast() -> None:
    usual, even = both()
    rows = torch.randn(1, 7, 24)
    assert torch.equal(usual(rows), even(rows))


def test_attention_multiplies_in_float32_on_a_cpu() -> None:
    assert in_attention(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float32
    states = torch.ones(2)
    assert in_attention(states) is states


def test_products_of_passes_of_other_lengths_share_their_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled for each shape: in bf16 all rows are multiples, and no product of attention is among them."""
    kinds, bmm = set(), torch.bmm

    def heard(one: Tensor, other: Tensor) -> Tensor:
        out = bmm(one, other)
        kinds.add(out.dtype)
        return out

    monkeypatch.setattr(torch, "bmm", heard)
    encoder = Encoder.load(tiny_backbone(tmp_path), precision="bf16")
    for count in (5, 17, 23):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
            encoder.encode(TEXTS[:count])
        rows = [
            event.input_shapes[1][0]
            for event in seen.events()
            if event.name == "aten::addmm" and len(event.input_shapes) > 1
        ]
        assert rows
        assert all(number % EVEN == 0 for number in rows), rows
    assert kinds == {torch.float32}
