"""Named streams: a draw depends on seed and name alone."""

from __future__ import annotations

import hashlib
import traceback
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.engine.streams import (
    STREAMS,
    draw_linear,
    number,
    numpy_stream,
    seed_global,
    seeded,
    torch_stream,
)


def test_a_stream_is_the_hash_of_its_name():
    digest = hashlib.blake2b(b"3|data|t2d|17", digest_size=8).digest()
    assert number(3, "data", "t2d", 17) == int.from_bytes(digest, "big")


def test_streams_ignore_and_spare_the_global_state():
    np.random.seed(1)  # noqa: NPY002 - the global state is what must not matter
    torch.manual_seed(1)
    before = (numpy_stream(0, "data").random(4), torch.rand(3, generator=torch_stream(0, "init")))
    np.random.seed(2)  # noqa: NPY002
    torch.manual_seed(2)
    global_draw = torch.get_rng_state()
    after = (numpy_stream(0, "data").random(4), torch.rand(3, generator=torch_stream(0, "init")))
    assert np.array_equal(before[0], after[0])
    assert torch.equal(before[1], after[1])
    assert torch.equal(global_draw, torch.get_rng_state())


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["data", "init", "dropout", "negatives"]))
def test_other_seed_step_or_name_is_another_stream(seed: int, step: int, name: str):
    numbers = {
        number(seed, name, step),
        number(seed + 1, name, step),
        number(seed, name, step + 1),
        number(seed, "x", step),
    }
    assert len(numbers) == 4


@pytest.mark.parametrize("seed", [0, 3, 2**64 - 1])
def test_the_global_stream_is_seeded_as_torch_seeds_it_and_no_stack_is_written_down(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(seed)
    drawn = torch.rand(3)

    def written(*_: Any, **__: Any) -> Any:
        raise AssertionError("a step of a card has no time for it")

    monkeypatch.setattr(traceback, "format_stack", written)
    seed_global(seed)
    assert torch.equal(torch.rand(3), drawn)


def test_a_stream_may_have_a_seed_of_its_own():
    as_they_are = [number(0, name, 3) for name in ("data", "init", "dropout/san", "others")]
    with seeded({"data": 7, "dropout": 8}):
        changed = [number(0, name, 3) for name in ("data", "init", "dropout/san", "others")]
    assert [one == other for one, other in zip(as_they_are, changed, strict=True)] == [False, True, False, True]
    assert changed[0] == number(7, "data", 3)
    assert changed[2] == number(8, "dropout/san", 3)
    assert [number(0, name, 3) for name in ("data", "init", "dropout/san", "others")] == as_they_are
    with seeded(dict.fromkeys(STREAMS, 9)):
        assert number(0, "process") == number(9, "process")


def test_a_run_given_up_does_not_end_the_streams_of_the_next():
    given_up = seeded({"data": 7})
    given_up.__enter__()
    with seeded({"data": 8}):
        given_up.__exit__(None, None, None)
        inside = number(0, "data")
    assert inside == number(8, "data")


def test_a_layer_is_drawn_as_torch_draws_one_and_from_its_stream_alone():
    layer, others = torch.nn.Linear(9, 5), torch.nn.Linear(9, 5)
    draw_linear(layer, torch_stream(3, "init", "head"))
    with torch.random.fork_rng():
        torch.manual_seed(number(3, "init", "head"))
        others.reset_parameters()
    assert torch.equal(layer.weight, others.weight)
    assert torch.equal(layer.bias, others.bias)
