"""Queries, keys and values by one product are those of three: in float32 the same sums, in bf16 but for rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tiny import tiny_backbone, tiny_corpus
from tests.trainers.cale_corpus import cale_corpus
from tests.trainers.san.corpus import san_corpus
from trainers.cale import settings as cale_settings
from trainers.cale import training as cale
from trainers.concept import settings as concept_settings
from trainers.concept import training as concept
from trainers.encoders import packing
from trainers.encoders.encoder import Encoder
from trainers.encoders.fused import BIAS, put_fusing
from trainers.encoders.tokens import Tokens
from trainers.engine.bf16_copies import with_bf16_copies
from trainers.engine.meter import FUSED, counting
from trainers.engine.world import World
from trainers.san import settings as san_settings
from trainers.san import training as san

SHORT: dict[str, Any] = {"steps": 3, "batch_size": 8, "learning_rate": 1e-3, "max_length": 48}


def san_training(backbone: Path, given: Mapping[str, Any]) -> Any:
    settings = san_settings.Settings(san="hince", negatives="san", **{**SHORT, **given})
    return san.fit(settings, backbone, san_corpus(), 0, World(precision="bf16"))


def concept_training(backbone: Path, given: Mapping[str, Any]) -> Any:
    settings = concept_settings.Settings(hard_negatives=True, **{**SHORT, **given})
    return concept.fit(settings, backbone, tiny_corpus(), 0, World(precision="bf16"))


def cale_training(backbone: Path, given: Mapping[str, Any]) -> Any:
    settings = cale_settings.Settings(**{**SHORT, **given})
    return cale.fit(settings, backbone, cale_corpus(), 0, World(precision="bf16"))


ARMS: dict[str, Callable[[Path, Mapping[str, Any]], Any]] = {
    "san": san_training,
    "concept": concept_training,
    "cale": cale_training,
}
LENGTHS = np.array([3, 11, 1, 7, 7, 30, 36, 2, 2, 2])
TOKENS = Tokens(np.random.default_rng(0).integers(5, 50, LENGTHS.sum()), LENGTHS)


def encoder_of(kind: str, *, dropout: float = 0.1) -> Encoder:
    from transformers import AutoConfig, AutoModel

    packing.register()
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = AutoConfig.for_model(kind, vocab_size=50, max_position_embeddings=40, pad_token_id=1, **size, **rates)
    torch.manual_seed(0)
    body = AutoModel.from_config(config, attn_implementation=packing.ATTENTION)
    body.pooler = None
    put_fusing(body)
    return Encoder(body, _Tokenizer()).train()


class _Tokenizer:
    model_max_length = 38


def attentions(encoder: Encoder) -> list[Any]:
    return [layer.attention.self for layer in encoder.backbone.encoder.layer]


def in_float32(encoder: Encoder) -> list[Tensor]:
    """Fuse the projections of all layers without rounding; the weights that are now theirs."""
    fused = []
    for attention in attentions(encoder):
        three = (attention.query, attention.key, attention.value)
        attention.__dict__[FUSED] = torch.cat([one.weight for one in three]).detach().requires_grad_()
        attention.__dict__[BIAS] = torch.cat([one.bias for one in three]).detach().requires_grad_()
        fused += [attention.__dict__[FUSED], attention.__dict__[BIAS]]
    return fused


def turned(rows: Tensor) -> Tensor:
    """A figure of rows to which all of their numbers count."""
    return (rows * torch.linspace(0, 9, rows.numel()).sin().view_as(rows)).sum()


@pytest.mark.parametrize("slack", [0, 64, 2048])
@pytest.mark.parametrize("kind", sorted(packing.PACKED))
def test_vectors_and_gradients_are_those_of_three_products(
    kind: str, slack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slack 0: a rectangle for every length; 2048: one for all texts, most of whose cells are padding."""
    monkeypatch.setattr("trainers.encoders.encoder.SLACK", slack)
    apart, together = encoder_of(kind), encoder_of(kind)
    fused = in_float32(together)
    rows = []
    for encoder in (apart, together):
        torch.manual_seed(5)
        rows.append(encoder(TOKENS))
        turned(rows[-1]).backward()
    torch.testing.assert_close(rows[1], rows[0], rtol=0, atol=1e-6)
    for (name, one), (_, other) in zip(apart.named_parameters(), together.named_parameters(), strict=True):
        if not any(part in name for part in ("query", "key", "value")):
            torch.testing.assert_close(other.grad, one.grad, rtol=1e-4, atol=1e-5, msg=name)
    wanted = [
        torch.cat([getattr(layer, name).grad for layer in (own.query, own.key, own.value)])
        for own in attentions(apart)
        for name in ("weight", "bias")
    ]
    for one, other in zip(wanted, fused, strict=True):
        torch.testing.assert_close(other.grad, one, rtol=1e-4, atol=1e-5)


def test_copies_of_three_send_each_its_own_gradient() -> None:
    """In bf16, over the same dropout: vectors to the last digit, gradients but for rounding."""
    apart, together = encoder_of("bert"), encoder_of("bert")
    for encoder, device in ((apart, "cpu"), (together, "cuda")):
        torch.manual_seed(5)
        with torch.autocast("cpu", torch.bfloat16):
            rows = with_bf16_copies(encoder, encoder.bf16_copies(device))(TOKENS)
        turned(rows).backward()
        assert not any(name in vars(own) for own in attentions(encoder) for name in (FUSED, BIAS))
    for (name, one), (_, other) in zip(apart.named_parameters(), together.named_parameters(), strict=True):
        if "key.bias" in name:  # changes no score's share: its gradient is what rounding left
            continue
        if one.grad is None:
            assert other.grad is None
            continue
        assert other.grad is not None, name
        assert other.grad.dtype == torch.float32
        assert (other.grad - one.grad).norm() < 0.03 * one.grad.norm(), name


def test_a_card_alone_copies_three_as_one() -> None:
    encoder = encoder_of("bert")
    layers = len(attentions(encoder))
    assert [len(copy.weights) for copy in encoder.bf16_copies("cpu")] == [1] * 2 * 6 * layers
    assert (
        sorted(len(copy.weights) for copy in encoder.bf16_copies("cuda:0"))
        == [1] * 2 * 3 * layers + [3] * 2 * layers
    )
    held = {id(one) for copy in encoder.bf16_copies("cuda:0") for one in copy.weights}
    assert held == {id(one) for copy in encoder.bf16_copies("cpu") for one in copy.weights}


def test_a_backbone_in_padded_rectangles_has_each_copied_alone() -> None:
    from transformers import MPNetConfig, MPNetModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    encoder = Encoder(MPNetModel(MPNetConfig(vocab_size=50, **sizes)), _Tokenizer())
    assert [len(copy.weights) for copy in encoder.bf16_copies("cuda")] == [1] * len(encoder.bf16_copies("cpu"))


@pytest.mark.parametrize("name", ["key.weight", "value.bias"])
def test_what_is_not_trained_as_a_whole_is_not_fused(name: str) -> None:
    encoder = encoder_of("bert")
    first = attentions(encoder)[0]
    first.get_parameter(name).requires_grad_(False)
    assert not any(copy.module is first for copy in encoder.bf16_copies("cuda"))
    with torch.autocast("cpu", torch.bfloat16):
        with_bf16_copies(encoder, encoder.bf16_copies("cuda"))(TOKENS).sum().backward()
    assert first.get_parameter(name).grad is None
    assert first.query.weight.grad is not None


def test_as_many_operations_are_counted() -> None:
    encoder = encoder_of("bert")
    found = []
    for device in ("cpu", "cuda"):
        with counting(encoder) as flops, torch.autocast("cpu", torch.bfloat16):
            with_bf16_copies(encoder, encoder.bf16_copies(device))(TOKENS).sum().backward()
            found.append(flops())
    assert found[0] == found[1] > 0


@dataclass(frozen=True)
class OnACard:
    """How many products of three a training asks for whose copies are those of a card."""

    asked: list[int]

    def fused(self, width: int) -> int:
        return self.asked.count(3 * width)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> OnACard:
    asked: list[int] = []
    usual, copies = nn.functional.linear, Encoder.bf16_copies

    def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        asked.append(len(weight))
        return usual(rows, weight, bias)

    monkeypatch.setattr("trainers.encoders.fused.F.linear", linear)
    monkeypatch.setattr(Encoder, "bf16_copies", lambda encoder, device, **named: copies(encoder, "cuda", **named))
    return OnACard(asked)


def losses_of(arm: str, folder: Path, **settings: Any) -> list[float]:
    _, curve = ARMS[arm](folder, settings)
    return [one.loss for one in curve]


@pytest.mark.parametrize("arm", ARMS)
def test_a_training_goes_as_it_does_with_three(arm: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Over a few steps, forward and back, also with texts that drop from a stream of their own."""
    backbone = tiny_backbone(tmp_path / "backbone", layers=2, width=32)
    apart = losses_of(arm, backbone)
    card: OnACard = request.getfixturevalue("card")
    together = losses_of(arm, backbone)
    assert card.fused(32) >= 2 * 3
    assert together[0] == apart[0]
    assert together[-1] == pytest.approx(apart[-1], rel=0.02)
    assert together[-1] != apart[-1]


@pytest.mark.parametrize("size", [4, "auto"])
@pytest.mark.parametrize("arm", ARMS)
def test_what_may_be_read_in_parts_is_not_fused(
    arm: str, size: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A part is read again in the pass back, and has to be read the same way."""
    backbone = tiny_backbone(tmp_path / "backbone", layers=2, width=32)
    apart = losses_of(arm, backbone, micro_batch=size)
    card: OnACard = request.getfixturevalue("card")
    assert losses_of(arm, backbone, micro_batch=size) == apart
    assert card.fused(32) == 0
