"""Dropout of 16 bits a value: its rate, what makes up for it, its gradient, and that nothing but its stream decides."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.encoders.dropout import LEVELS, draw, dropout

MANY = 200_003  # four do not go into it


def noise_of(rate: float, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return draw(torch.empty(MANY, dtype=dtype), rate, torch.Generator().manual_seed(seed))


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0, 1.0), st.integers(0, 1000))
def test_a_value_is_dropped_or_made_up_for_what_is(rate: float, seed: int):
    """At the next multiple of 1/65,536, and at one of them where there is a rate at all."""
    noise = noise_of(rate, seed)
    own = max(1, round(rate * LEVELS)) / LEVELS if rate else 0.0
    dropped = (noise == 0).double().mean().item()
    assert abs(dropped - own) <= 6 * math.sqrt(own * (1 - own) / MANY) + 10 / MANY
    kept = noise[noise != 0]
    if own < 1:
        assert kept.unique().tolist() == [pytest.approx(1 / (1 - own), rel=1e-6)]


def test_of_no_rate_nothing_is_dropped_and_of_all_everything():
    values = torch.randn(7)
    assert torch.equal(dropout(values, 0.0), values)
    assert torch.equal(noise_of(0.0), torch.ones(MANY))
    assert not noise_of(1.0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_all_precisions_drop_the_same(dtype: torch.dtype):
    assert torch.equal(noise_of(0.1, dtype=dtype) == 0, noise_of(0.1) == 0)


def test_neighbours_know_nothing_of_one_another():
    """Four numbers are parts of one: agreement at any distance is as of independent ones."""
    gone = (noise_of(0.5) == 0).double() - 0.5
    for distance in (1, 2, 3, 4, 5, 8, 312, 624):
        together = (gone[:-distance] * gone[distance:]).mean().item() * 4
        assert abs(together) < 5 / math.sqrt(MANY)


@pytest.mark.parametrize("count", [1, 4, 5, MANY])
def test_four_values_take_one_number_of_the_stream(count: int):
    """What is drawn next depends on it, and so do the figures of all steps after the first."""
    stream, other = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    draw(torch.empty(count), 0.1, stream)
    torch.empty(math.ceil(count / 4), dtype=torch.int64).random_(-(2**63), None, generator=other)
    assert torch.equal(stream.get_state(), other.get_state())


def test_what_is_sent_back_went_the_same_way():
    values = torch.randn(40, 30, requires_grad=True)
    torch.manual_seed(3)
    after = dropout(values, 0.3)
    (gradient,) = torch.autograd.grad(after, values, torch.full_like(values, 2.0))
    torch.manual_seed(3)
    noise = draw(torch.empty(40, 30), 0.3)
    assert torch.equal(after, values * noise)
    assert torch.equal(gradient, 2 * noise)


def test_a_part_of_a_tensor_can_be_drawn_from_a_stream_of_its_own():
    whole = torch.empty(1, 9, 5)
    torch.manual_seed(1)
    draw(whole[:, :4], 0.4)
    draw(whole[:, 4:], 0.4, torch.Generator().manual_seed(2))
    torch.manual_seed(1)
    assert torch.equal(whole[:, :4], draw(torch.empty(1, 4, 5), 0.4))
    assert torch.equal(whole[:, 4:], draw(torch.empty(1, 5, 5), 0.4, torch.Generator().manual_seed(2)))
