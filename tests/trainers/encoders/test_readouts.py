"""Readouts against numbers worked out in float64 elsewhere, and what defines them."""

from __future__ import annotations

import pytest
import torch

from trainers.encoders import readouts
from trainers.losses import unit

LAYERS = torch.tensor(
    [[[1, 0], [3, 2], [9, 9]], [[0, 2], [2, 0], [9, 9]], [[-1, 1], [1, 3], [9, 9]]], dtype=torch.float64
)[:, None]  # (3, 1, 3, 2)
MASK = torch.tensor([[1, 1, 0]])


def random_layers() -> torch.Tensor:
    return torch.randn(4, 5, 6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


RAGGED = torch.arange(6)[None, :] < torch.tensor([6, 1, 3, 4, 2])[:, None]


def test_weighted_by_the_numbers():
    logits = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    pooled = readouts.weighted(list(LAYERS), MASK, logits)
    assert readouts.layer_mixture(logits).tolist() == pytest.approx(
        [0.090030573, 0.244728471, 0.665240956], abs=1e-6
    )
    assert pooled[0].tolist() == pytest.approx([0.424789617, 1.665240956], abs=1e-6)
    assert unit(pooled)[0].tolist() == pytest.approx([0.247176593, 0.968970449], abs=1e-6)


def test_mixing_layers_and_averaging_tokens_commute():
    layers, logits = random_layers(), torch.tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64)
    mixed_first = readouts.mean(torch.einsum("k,kbtd->btd", logits.softmax(0), layers), RAGGED)
    assert torch.allclose(readouts.weighted(list(layers), RAGGED, logits), mixed_first, atol=1e-12)


def test_all_weight_on_the_last_layer_is_its_mean():
    layers = random_layers()
    pooled = readouts.weighted(list(layers), RAGGED, torch.tensor([0.0, 0.0, 0.0, 50.0], dtype=torch.float64))
    assert torch.allclose(pooled, readouts.mean(layers[-1], RAGGED), atol=1e-6)


def test_autocast_leaves_a_mixture_in_the_precision_of_its_layers():
    """Also a logit that moves by .001, which weights in bf16 would not show: their next number after .25 is .252."""
    layers, gate = (
        random_layers().float(),
        torch.randn(5, 4, generator=torch.Generator().manual_seed(1)).softmax(-1),
    )
    for logits in (torch.zeros(4), torch.tensor([0, 0, 0, 1e-3]), torch.tensor([0, 0, 0, 50.0])):
        plain = (
            readouts.weighted(list(layers), RAGGED, logits),
            readouts.gated(list(layers), RAGGED, lambda last: gate),
        )
        with torch.autocast("cpu", torch.bfloat16):
            half = (
                readouts.weighted(list(layers), RAGGED, logits),
                readouts.gated(list(layers), RAGGED, lambda last: gate),
            )
        assert all(torch.equal(*pair) for pair in zip(plain, half, strict=True))


def test_a_gate_reads_the_mean_of_the_last_layer_and_gives_each_text_weights_of_its_own():
    layers = random_layers()
    means = torch.stack([readouts.mean(layer, RAGGED) for layer in layers])  # (K, N, D)
    pooled = readouts.gated(list(layers), RAGGED, lambda last: last[:, :4].softmax(-1))
    weights = means[3, :, :4].exp() / means[3, :, :4].exp().sum(1, keepdim=True)
    for text, row in enumerate(pooled):
        assert torch.allclose(row, sum(weights[text, k] * means[k, text] for k in range(4)), atol=1e-12)


@pytest.mark.parametrize("read", [readouts.mean, readouts.maximum, readouts.last, readouts.total])
def test_padding_does_not_count(read):
    hidden = random_layers()[0]
    spoilt = torch.where(RAGGED[..., None], hidden, 1e6)
    alone = torch.cat(
        [
            read(hidden[i : i + 1, :n], torch.ones(1, n, dtype=torch.long))
            for i, n in enumerate(RAGGED.sum(1).tolist())
        ]
    )
    assert torch.allclose(read(spoilt, RAGGED), alone, atol=1e-9)
    assert torch.equal(readouts.first(spoilt), hidden[:, 0])


def test_the_last_token_and_the_sum_by_the_numbers():
    assert readouts.last(LAYERS[0], MASK).tolist() == [[3, 2]]
    assert readouts.total(LAYERS[0], MASK).tolist() == [[4, 2]]
