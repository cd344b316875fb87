"""Numbers given with the method: computed by hand in plain numpy and in float64 torch, not by the code under test."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trainers.defsent.encoder import places
from trainers.defsent.heads import PredictionHead, Transform
from trainers.defsent.sentence_bert import pair_features
from trainers.defsent.settings import Settings
from trainers.defsent.training import warm_then_constant
from trainers.encoders import readouts

NEAR = {"abs": 1e-6, "rel": 1e-6}
HIDDEN = torch.tensor(
    [
        [[1, -2, 3], [4, 0, -1], [9, 9, 9], [8, 8, 8]],
        [[-1, -2, -3], [-4, -5, -0.5], [-2, -1, -6], [7, 7, 7]],
    ]
)
MASK = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("pooled", "expected"),
    [
        (readouts.first(HIDDEN), [[1, -2, 3], [-1, -2, -3]]),
        (readouts.mean(HIDDEN, MASK), [[2.5, -1, 1], [-2.333333333, -2.666666667, -3.166666667]]),
        (readouts.maximum(HIDDEN, MASK), [[4, 0, 3], [-1, -1, -0.5]]),  # not 0 where all values are negative
        (readouts.last(HIDDEN, MASK), [[4, 0, -1], [-2, -1, -6]]),
        (readouts.total(HIDDEN, MASK), [[5, -2, 2], [-7, -8, -9.5]]),
    ],
)
def test_pooling(pooled: torch.Tensor, expected: list[list[float]]):
    assert pooled.tolist() == [pytest.approx(row, **NEAR) for row in expected]


def test_pooling_leaves_what_it_reads_as_it_was():
    """The authors' code overwrites the token states, with -1e6 under a maximum: more than half precision holds."""
    before = HIDDEN.clone()
    half = HIDDEN.half()
    for read in (readouts.mean, readouts.maximum, readouts.last, readouts.total):
        read(HIDDEN, MASK)
        assert torch.isfinite(read(half, MASK)).all()
    assert torch.equal(HIDDEN, before)


def test_the_prediction_head():
    """logits of two sentence vectors over four words, and the mean cross-entropy."""
    transform = Transform(3, eps=1e-12)
    weights = {
        "dense.weight": [[0.5, -1, 0.2], [0.3, 0.8, -0.6], [-0.4, 0.1, 1.1]],
        "dense.bias": [0.1, -0.2, 0],
        "norm.weight": [1.5, 0.5, 1],
        "norm.bias": [0, 0.25, -0.1],
    }
    transform.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    decoder = torch.tensor([[1, 0, 0.5], [0, 1, -1], [-1, 1, 0.3], [0.5, 0.5, 0.5]])
    head = PredictionHead(nn.Parameter(decoder), transform, nn.Parameter(torch.tensor([0, 0.1, -0.1, 0.2])))
    logits = head(torch.tensor([[0.3, -0.7, 1], [1.2, 0.4, -0.5]]))
    expected = [
        [1.598646554, -0.6607386692, -1.881778969, 0.8596232149],
        [-0.9408564938, 2.205498173, 0.7973175554, -0.1131112901],
    ]
    assert logits.tolist() == [pytest.approx(row, **NEAR) for row in expected]
    assert F.cross_entropy(logits, torch.tensor([2, 0])).item() == pytest.approx(3.715586025, **NEAR)


def test_the_place_of_a_word_with_ties_against_it():
    logits = torch.tensor(
        [[2, 1, 2, 0, -1, 3], [0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, 0], [1, 3, 2, 3, 0, -2]], dtype=torch.float
    )
    assert places(logits, torch.tensor([2, 4, 0, 3])).tolist() == [3, 6, 1, 2]


def test_warm_up_then_constant():
    """25 steps: the threshold is 2.5, not rounded; the first update moves nothing, and nothing decays."""
    shares = [warm_then_constant(step, warmup=0.1 * 25) for step in (0, 1, 2, 3, 24)]
    assert shares == pytest.approx([0, 0.4, 0.8, 1, 1], **NEAR)
    assert warm_then_constant(0, warmup=0) == 1


def test_the_papers_rates():
    """2^x · 1e-6; the launch scripts write x = 2.5 and 3.5 as decimals."""
    rates = [Settings(lr_exponent=x).rate for x in (0, 2.5, 3.5, 7)]
    assert rates == pytest.approx([1e-6, 5.656854249e-6, 1.13137085e-5, 0.000128], rel=1e-9)
    assert Settings(lr_exponent=2.5).rate == pytest.approx(5.656854249492381e-06, rel=1e-12)


def test_the_softmax_of_sentence_bert():
    u, v = torch.tensor([[1, -0.5], [0.2, 0.4]]), torch.tensor([[0.5, 0.5], [-0.3, 1]])
    features = pair_features(u, v)
    assert features.tolist() == [
        pytest.approx([1, -0.5, 0.5, 0.5, 0.5, 1], **NEAR),
        pytest.approx([0.2, 0.4, -0.3, 1, 0.5, 0.6], **NEAR),
    ]
    weight = torch.tensor(
        [[0.1, 0.2, 0.3, -0.1, 0.4, 0], [0, -0.2, 0.1, 0.5, -0.6, 0.2], [0.3, 0.3, -0.4, 0, 0.1, 0.7]]
    )
    logits = features @ weight.T
    assert np.allclose(logits, [[0.3, 0.3, 0.7], [0.11, 0.21, 0.77]], atol=1e-6)
    assert F.cross_entropy(logits, torch.tensor([1, 2])).item() == pytest.approx(0.9933300158, **NEAR)
