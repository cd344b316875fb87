"""Torch's attention over ragged sequences, as the benchmarks run it, gives what ours gives."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.tiny import WORDS, tiny_backbone
from trainers.encoders import packing
from trainers.encoders.encoder import Encoder

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
TEXTS = [" ".join(WORDS[:length]) for length in (1, 5, 3, 3, 60, 17, 40)]


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("ragged_attention")
    monkeypatch.delitem(sys.modules, "ragged_attention")
    return module


def passed(encoder: Encoder) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Vectors of the texts, and the gradient of their first numbers by each parameter."""
    torch.manual_seed(0)
    encoder.zero_grad()
    vectors = encoder(encoder.tokenise(TEXTS))
    vectors[:, 0].sum().backward()
    return vectors.detach(), {name: one.grad for name, one in encoder.named_parameters() if one.grad is not None}


def test_vectors_and_gradients_are_those_of_packed_attention(torchs: ModuleType, tmp_path: Path) -> None:
    from transformers import AttentionInterface

    encoder = Encoder.load(tiny_backbone(tmp_path / "tiny", dropout=0.0)).train()
    vectors, gradients = passed(encoder)
    rows = encoder.encode(TEXTS)
    with torchs.ragged():
        assert AttentionInterface()[packing.ATTENTION] is torchs.ragged_attention
        others, others_gradients = passed(encoder)
        torch.testing.assert_close(encoder.encode(TEXTS), rows, rtol=0, atol=2e-6)
    torch.testing.assert_close(others, vectors, rtol=0, atol=2e-6)
    torch.testing.assert_close(others_gradients, gradients, rtol=0, atol=5e-6)
    assert AttentionInterface()[packing.ATTENTION] is packing.packed_attention


def test_dropout_falls_in_training_alone_and_by_the_seed(torchs: ModuleType, tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_backbone(tmp_path / "tiny", dropout=0.0)).train()
    for layer in encoder.backbone.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    with torchs.ragged():
        still, _ = passed(encoder.eval())
        vectors, gradients = passed(encoder.train())
        again, again_gradients = passed(encoder)
    assert not torch.allclose(vectors, still, atol=1e-3)
    assert torch.equal(again, vectors)
    assert all(torch.equal(again_gradients[name], gradient) for name, gradient in gradients.items())
