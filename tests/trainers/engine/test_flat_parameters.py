"""Parameters in the memory of one, against the same ones each for itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainers.engine.flat_parameters import FlatParameters, flattened
from trainers.engine.optimisation import clip

SIZES = [(5, 7), (7,), (), (64,), (1, 3, 11)]


class Model(nn.Module):
    """Parameters of many shapes; those of one dimension have no weight decay."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.weights = nn.ParameterList([torch.randn(size) for size in SIZES])
        self.beside = nn.Parameter(torch.randn(4, 4))

    def groups(self) -> list[dict[str, Any]]:
        own = list(self.parameters())
        return [
            {"params": [one for one in own if one.ndim > 1], "weight_decay": 0.1, "lr": 1e-2},
            {"params": [one for one in own if one.ndim <= 1], "weight_decay": 0.0, "lr": 1e-3},
        ]


def loss(model: Model, step: int) -> Tensor:
    draw = torch.Generator().manual_seed(step)
    each = [(one.sin() * torch.randn(one.shape, generator=draw)).sum() for one in model.parameters()]
    return torch.stack(each).sum()


def trained(
    model: Model, held: list[dict[str, Any]], back: Callable[[Tensor], None] = Tensor.backward, limit: float = 0.0
) -> list[nn.Parameter]:
    optimizer = torch.optim.AdamW(held, fused=True)
    for step in range(6):
        back(loss(model, step))
        if limit:
            clip([one for group in held for one in group["params"]], limit)
        optimizer.step()
        optimizer.zero_grad()
    return list(model.parameters())


def made() -> tuple[Model, Model, list[dict[str, Any]], list[FlatParameters]]:
    """A model, and another of the same weights, of which most are flat; its groups, and what is flat."""
    model = Model()
    other = deepcopy(model)
    return model, other, *flattened(other.groups(), list(other.weights))


def test_an_update_is_that_of_each_parameter_to_the_last_digit() -> None:
    model, other, held, flats = made()
    assert [len(group["params"]) for group in held] == [2, 1]  # `beside` stays as it is
    assert [{**group, "params": 0} for group in held] == [{**group, "params": 0} for group in model.groups()]
    for found, expected in zip(trained(other, held), trained(model, model.groups()), strict=True):
        assert torch.equal(found, expected)
    assert all(flat.whole.grad is None for flat in flats)
    assert all(part.grad is None for flat in flats for part in flat.parts)


def test_clipped_together_they_are_clipped_as_one_by_one() -> None:
    model, other, held, _ = made()
    for found, expected in zip(
        trained(other, held, limit=0.5), trained(model, model.groups(), limit=0.5), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_gradients_that_are_given_and_those_of_a_backward_pass_add_up() -> None:
    """Whichever comes first; half is given, half found, in two passes."""
    model, other, held, flats = made()

    def both(found: Tensor) -> None:
        own = list(other.weights)
        given = torch.autograd.grad(found, own, retain_graph=True)
        halves = {id(one): 0.5 * gradient for one, gradient in zip(own, given, strict=True)}
        (found / 4).backward(retain_graph=True)
        for flat in flats:
            memory = torch.zeros_like(flat.whole)
            for part, view in zip(flat.parts, flat.views(memory), strict=True):
                view.copy_(halves[id(part)])
            flat.add(memory)
        (found / 4).backward()
        assert other.beside.grad is not None
        other.beside.grad *= 2

    for found, expected in zip(trained(other, held, both), trained(model, model.groups()), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_each_part_begins_where_memory_of_its_own_could() -> None:
    flats = made()[3]
    for flat in flats:
        begins = [part.data_ptr() - flat.whole.data_ptr() for part in flat.parts]
        assert begins == sorted(set(begins))
        assert all(begin % 128 == 0 for begin in begins)


def test_apart_again_they_are_as_they_would_have_been() -> None:
    other, held, flats = made()[1:]
    trained(other, held)
    before = {name: one.detach().clone() for name, one in other.named_parameters()}
    for flat in flats:
        flat.separate()
    for name, one in other.named_parameters():
        assert torch.equal(one, before[name])
        assert one.untyped_storage().nbytes() == 4 * one.numel()
    loss(other, 0).backward()
    for flat in flats:
        assert flat.whole.grad is None
        assert all(part.grad is not None for part in flat.parts)


@pytest.mark.parametrize("chosen", [0, 2])
def test_a_group_of_which_nothing_is_chosen_stays(chosen: int) -> None:
    model = Model()
    held, flats = flattened(model.groups(), list(model.weights)[1 : 1 + chosen])
    assert [len(group["params"]) for group in held] == [3, 3 - max(0, chosen - 1)]
    assert len(flats) == bool(chosen)
