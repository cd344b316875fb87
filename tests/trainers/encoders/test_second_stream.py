"""Texts that pass with others drop what they would drop alone, and so do the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trainers.encoders import encoder as of_encoders
from trainers.encoders.encoder import Encoder
from trainers.encoders.second_stream import SecondStream

FIRST = ["a dog runs in the town", "the cat", "a pot of stone", "a bird grows by the river of stone"]
OTHERS = ["the pot", "a cat runs by the river in the town", "stone"]
STREAM = 77
Found = tuple[torch.Tensor, list[torch.Tensor]]


@pytest.fixture
def encoder(backbone: Path) -> Encoder:
    return Encoder.load(backbone, readout="mean", max_length=32).train()


def together(encoder: Encoder, second: SecondStream, rate: float | None = None) -> Found:
    first, others = encoder.tokenise(FIRST), encoder.tokenise(OTHERS)
    torch.manual_seed(1)
    with second.drawing(first, STREAM, rate=rate):
        return with_gradients(encoder, encoder(first, others))


def one_by_one(encoder: Encoder) -> Found:
    torch.manual_seed(1)
    rows = encoder(encoder.tokenise(FIRST))
    torch.manual_seed(STREAM)
    return with_gradients(encoder, torch.cat([rows, encoder(encoder.tokenise(OTHERS))]))


def with_gradients(encoder: Encoder, rows: torch.Tensor) -> Found:
    encoder.zero_grad()
    (rows @ rows.T).exp().sum().backward()
    return rows.detach(), [one.grad.clone() for one in encoder.parameters() if one.grad is not None]


def close(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.allclose(*pair, rtol=1e-4, atol=1e-4) for pair in zip(some, others, strict=True))


@pytest.mark.parametrize("limit", [of_encoders.PASS, 40, 20, 8])
def test_one_pass_is_two_to_the_last_digit(encoder: Encoder, limit: int, monkeypatch: pytest.MonkeyPatch):
    """Gradients are sums in another order. Where one pass does not hold all, the others begin one of their own."""
    monkeypatch.setattr(of_encoders, "PASS", limit)
    monkeypatch.setattr(of_encoders, "SLACK", 0)
    expected, gradients = one_by_one(encoder)
    found, own = together(encoder, SecondStream(encoder))
    assert torch.equal(found, expected)
    assert close(own, gradients)


def test_in_bf16_too(encoder: Encoder):
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(together(encoder, SecondStream(encoder))[0], one_by_one(encoder)[0])


def test_the_others_may_have_a_rate_of_their_own(encoder: Encoder):
    alone = one_by_one(encoder)[0]
    encoder.eval()
    quiet = one_by_one(encoder)[0]
    found = together(encoder.train(), SecondStream(encoder), rate=0.0)[0]
    assert torch.equal(found[: len(FIRST)], alone[: len(FIRST)])
    assert torch.equal(found[len(FIRST) :], quiet[len(FIRST) :])


def test_afterwards_and_in_use_it_is_as_if_nothing_were_there(encoder: Encoder):
    rows = one_by_one(encoder)[0]
    second = SecondStream(encoder)
    together(encoder, second)
    assert torch.equal(one_by_one(encoder)[0], rows)
    encoder.eval()
    assert torch.equal(together(encoder, second)[0], one_by_one(encoder)[0])
