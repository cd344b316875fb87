"""What an encoder does on a card in another way than on a CPU: on the device that SEMRAY_TEST_DEVICE names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from semray.testing import tiny_backbone
from tests.as_graphs import as_graphs, clear, gradients_by_name
from tests.scored_texts import rated, score, texts_of
from trainers.encoders import packing
from trainers.encoders.dropout import Site
from trainers.encoders.encoder import Encoder
from trainers.encoders.flash import attention_at_once
from trainers.encoders.graphs import Graphs
from trainers.encoders.packed_texts import PackedTexts
from trainers.encoders.stacked_layers import _kept
from trainers.engine import micro_batches
from trainers.engine.bf16_copies import with_bf16_copies
from trainers.engine.micro_batches import MicroBatch, in_parts
from trainers.engine.process import reset_process
from trainers.engine.world import World

DEVICE = torch.device(os.environ.get("SEMRAY_TEST_DEVICE", "cpu"))
pytestmark = pytest.mark.skipif(DEVICE.type == "cpu", reason="of a card: SEMRAY_TEST_DEVICE names one")
with_kernels = pytest.mark.skipif(DEVICE.type != "cuda", reason="of a card that is one")
RATE = 0.1

Loss = Callable[[Callable[..., Tensor]], Tensor]
Found = tuple[Tensor, dict[str, Tensor]]


def test_encoders_of_a_stack_make_up_for_what_is_dropped_as_torch_does() -> None:
    """In float32, rounded once. A bfloat16 holds 1.109 for 1.111: all that is kept would be too small."""
    noise = _kept(Site(RATE).train(), torch.empty(64, 64, dtype=torch.bfloat16, device=DEVICE))
    assert noise is not None
    assert noise.dtype == torch.float32
    assert sorted(set(noise.cpu().flatten().tolist())) == [0.0, pytest.approx(1 / (1 - RATE), rel=1e-6)]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("card") / "small", layers=3, width=128, heads=4)


@pytest.fixture
def encoder(backbone: Path) -> Iterator[Encoder]:
    reset_process(0, World(device=str(DEVICE)))
    encoder = Encoder.load(backbone, max_length=512).to(DEVICE).train()
    for layer in encoder.modules():
        if isinstance(
            layer, torch.nn.Linear
        ):  # or else bf16 has no digit in common with float32 after three layers
            layer.weight.data.mul_(0.2)
    yield encoder
    reset_process(0, World())


def gradients(
    encoder: Encoder, loss: Loss, own: Graphs | None = None, *, precision: str = "bf16", seed: int = 0
) -> Found:
    """own: the graphs that the encoder runs as."""
    clear(encoder, own)
    torch.manual_seed(seed)
    copies = encoder.bf16_copies(str(DEVICE)) if precision == "bf16" and own is None else []
    with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bf16"):
        found = loss(with_bf16_copies(encoder, copies))
    found.backward()
    return found.detach(), gradients_by_name(encoder, own)


def apart(found: Found, expected: Found) -> float:
    """How far gradients are from those expected, of the length of those."""
    assert found[1].keys() == expected[1].keys()
    one, other = (torch.cat([each[1][name].flatten() for name in sorted(each[1])]) for each in (found, expected))
    return float((one - other).norm() / other.norm())


@with_kernels
@pytest.mark.parametrize("longest", [20, 400])
def test_flash_attention_is_attention(encoder: Encoder, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rated(encoder, 0.0)
    tokens = texts_of(encoder, 24, longest)

    def loss(encode: Callable[..., Tensor]) -> Tensor:
        return score(encode(tokens))

    exact = gradients(encoder, loss, precision="fp32")
    flash = apart(gradients(encoder, loss), exact)
    monkeypatch.setattr(packing, "attends", lambda *_: False)
    assert 0 < flash < 1.5 * apart(gradients(encoder, loss), exact) < 0.15


@with_kernels
@pytest.mark.parametrize("longest", [20, 400])
def test_graphs_give_what_their_kernels_give_one_by_one(encoder: Encoder, longest: int) -> None:
    rated(encoder, 0.0)
    one, other = texts_of(encoder, 24, longest), texts_of(encoder, 9, longest, seed=1)

    def loss(encode: Callable[..., Tensor]) -> Tensor:
        first = encode(one)
        return score(first) + score(encode(other)) + (first * encode(one)).sum()

    exact = gradients(encoder, loss, precision="fp32")
    usual = apart(gradients(encoder, loss), exact)
    with as_graphs(encoder, str(DEVICE)) as own:
        for _ in range(3):
            assert 0 < apart(gradients(encoder, loss, own), exact) < 1.2 * usual < 0.1


@with_kernels
@pytest.mark.parametrize("longest", [20, 400])
def test_graphs_give_one_seed_the_same_bits_and_another_seed_others(encoder: Encoder, longest: int) -> None:
    """Whichever graphs were captured before, and whatever was in their memory."""
    rated(encoder, RATE)
    one, other = texts_of(encoder, 24, longest), texts_of(encoder, 40, longest, seed=1)

    def loss(encode: Callable[..., Tensor]) -> Tensor:
        return score(encode(one))

    with as_graphs(encoder, str(DEVICE)) as own:
        first, again = gradients(encoder, loss, own), gradients(encoder, loss, own)
        assert apart(gradients(encoder, loss, own, seed=1), first) > 0.01
    with as_graphs(encoder, str(DEVICE)) as own:
        gradients(encoder, lambda encode: score(encode(other)) + score(encode(one)), own)
        later = gradients(encoder, loss, own)
    for found in (again, later):
        assert torch.equal(found[0], first[0])
        assert all(torch.equal(gradient, first[1][name]) for name, gradient in found[1].items())


@with_kernels
@pytest.mark.parametrize("longest", [20, 400])
def test_a_part_that_graphs_read_again_draws_what_it_drew(
    encoder: Encoder, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same parts with all that lies between kept in memory, where nothing is read twice."""
    rated(encoder, RATE)
    tokens = texts_of(encoder, 40, longest)

    def loss(encode: Callable[..., Tensor]) -> Tensor:
        return score(in_parts(lambda part, _: encode(part), tokens, MicroBatch(16, auto=False, reentrant=True)))

    with as_graphs(encoder, str(DEVICE)) as own:
        again = [gradients(encoder, loss, own) for _ in range(3)]
        assert len(own._slots) == 1
        other = gradients(encoder, loss, own, seed=1)
    monkeypatch.setattr(micro_batches, "checkpoint", lambda read, *given, **_: read(*given))
    with as_graphs(encoder, str(DEVICE)) as own:
        kept = gradients(encoder, loss, own)
        assert len(own._slots) == 3
    for found in again:
        assert torch.equal(found[0], kept[0])
        assert apart(found, kept) < 1e-5
    assert apart(other, kept) > 0.01


@with_kernels
def test_dropout_keeps_its_share_in_graphs(encoder: Encoder) -> None:
    """A step's noise has no bias: over many seeds the mean is near what no dropout gives."""
    tokens = texts_of(encoder, 16)
    with as_graphs(encoder, str(DEVICE)) as own:
        plain = gradients(rated(encoder, 0.0), lambda encode: encode(tokens)[:, 0].sum(), own)[0]
        drawn = [
            gradients(rated(encoder, RATE), lambda encode: encode(tokens)[:, 0].sum(), own, seed=seed)[0]
            for seed in range(40)
        ]
    each = torch.stack(drawn)
    assert each.unique().numel() > 30
    assert abs(each.mean() - plain) < 5 * each.std() / 40**0.5 + 0.05 * plain.abs()


@with_kernels
@pytest.mark.parametrize("longest", [20, 400])
def test_a_backward_pass_drops_what_its_forward_pass_has_dropped(encoder: Encoder, longest: int) -> None:
    """What is mixed is linear in the values: its slope in the direction of other values is what those would give."""
    draw = torch.Generator(DEVICE).manual_seed(0)
    lengths = np.random.default_rng(0).integers(longest // 2, longest, 8)
    rows, others, weights = (
        torch.randn(int(lengths.sum()), *size, 32, device=DEVICE, generator=draw).bfloat16()
        for size in ((3, 4), (1, 4), (4,))
    )
    texts = PackedTexts.of(lengths, DEVICE)

    def mixed(given: Tensor) -> Tensor:
        torch.manual_seed(3)
        return attention_at_once(given, texts, scaling=32**-0.5, dropout=0.3)

    (slope,) = torch.autograd.grad(mixed(rows.requires_grad_()), rows, weights)
    with torch.no_grad():
        given = (mixed(torch.cat([rows[:, :2], others], 1)).float() * weights.float()).sum()
    each = slope[:, 2:].float() * others.float()
    assert abs(each.sum() - given) < 0.05 * each.pow(2).sum().sqrt()


@with_kernels
def test_sixty_four_bits_of_a_seed_reach_a_graph(encoder: Encoder) -> None:
    """Of attention, whose kernel takes its seed from torch's own numbers."""
    tokens = texts_of(rated(encoder, 0.0), 8)
    for layer in encoder.backbone.encoder.layer:
        layer.attention.self.dropout.p = RATE
    with as_graphs(encoder, str(DEVICE)) as own:
        low, high = (
            gradients(encoder, lambda encode: score(encode(tokens)), own, seed=seed)[0] for seed in (5, 5 + 2**40)
        )
    assert low != high
