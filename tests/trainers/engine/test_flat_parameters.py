"""Parameters in the memory of one, against the same ones each for itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from io import BytesIO
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from trainers.engine.flat_groups import FlatGroups
from trainers.engine.optimisation import clip, parameters_of

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
    model: Model,
    held: list[dict[str, Any]] | AdamW,
    back: Callable[[Tensor], None] = Tensor.backward,
    limit: float = 0.0,
    steps: range = range(6),
) -> list[nn.Parameter]:
    optimizer = held if isinstance(held, AdamW) else AdamW(held, fused=True)
    for step in steps:
        back(loss(model, step))
        if limit:
            clip(parameters_of(optimizer.param_groups), limit)
        optimizer.step()
        optimizer.zero_grad()
    return list(model.parameters())


def made() -> tuple[Model, Model, FlatGroups]:
    """A model, and another of the same weights, of which most are flat."""
    model = Model()
    other = deepcopy(model)
    flat = FlatGroups(other.groups())
    flat.join(other.weights)
    return model, other, flat


def test_an_update_is_that_of_each_parameter_to_the_last_digit() -> None:
    model, other, flat = made()
    assert [len(group["params"]) for group in flat.held] == [2, 1]  # `beside` stays as it is
    assert [{**group, "params": 0} for group in flat.held] == [{**group, "params": 0} for group in model.groups()]
    for found, expected in zip(trained(other, flat.held), trained(model, model.groups()), strict=True):
        assert torch.equal(found, expected)
    assert all(one.whole.grad is None for one in flat.flats)
    assert all(part.grad is None for one in flat.flats for part in one.parts)


def test_clipped_together_they_are_clipped_as_one_by_one() -> None:
    model, other, flat = made()
    for found, expected in zip(
        trained(other, flat.held, limit=0.5), trained(model, model.groups(), limit=0.5), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_gradients_that_are_given_and_those_of_a_backward_pass_add_up() -> None:
    """Whichever comes first; half is given, half found, in two passes."""
    model, other, flat = made()

    def both(found: Tensor) -> None:
        own = list(other.weights)
        given = torch.autograd.grad(found, own, retain_graph=True)
        halves = {id(one): 0.5 * gradient for one, gradient in zip(own, given, strict=True)}
        (found / 4).backward(retain_graph=True)
        for one in flat.flats:
            one.add(one.joined([halves[id(part)] for part in one.parts]))
        (found / 4).backward()
        other.beside.grad *= 2

    for found, expected in zip(trained(other, flat.held, both), trained(model, model.groups()), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_gradient_that_was_taken_is_kept_as_it_was() -> None:
    one = made()[2].flats[0]
    own, other = torch.ones_like(one.whole), torch.ones_like(one.whole)
    one.add(own)
    for gradient in (other, own):
        one.keep(gradient)
        gradient.zero_()
    assert not own.any()
    assert torch.equal(one.whole.grad, torch.ones_like(one.whole))


@pytest.mark.parametrize("flat_first", [True, False])
def test_what_an_optimizer_records_goes_on_with_flat_parameters_and_without(flat_first: bool) -> None:
    """Through a file, by the weights and state of parameters one by one."""
    model, other, flat = made()
    whole = deepcopy(model)
    expected = trained(whole, whole.groups())
    apart, joined = AdamW(model.groups(), fused=True), AdamW(flat.held, fused=True)
    flat.record_apart(joined)
    (first, before), (second, after) = ((other, joined), (model, apart))[:: 1 if flat_first else -1]
    trained(first, before, steps=range(3))
    file = BytesIO()
    torch.save([first.state_dict(), before.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    second.load_state_dict(weights)
    after.load_state_dict(state)
    for found, one in zip(trained(second, after, steps=range(3, 6)), expected, strict=True):
        assert torch.equal(found, one)


def test_each_part_begins_where_memory_of_its_own_could() -> None:
    for flat in made()[2].flats:
        begins = [part.data_ptr() - flat.whole.data_ptr() for part in flat.parts]
        assert begins == sorted(set(begins))
        assert all(begin % 128 == 0 for begin in begins)


def test_apart_again_they_are_as_they_would_have_been() -> None:
    other, flat = made()[1:]
    trained(other, flat.held)
    before = {name: one.detach().clone() for name, one in other.named_parameters()}
    loss(other, 0).backward()
    flat.separate()
    for name, one in other.named_parameters():
        assert torch.equal(one, before[name])
        assert one.untyped_storage().nbytes() == 4 * one.numel()
    assert not sum(one.whole.numel() for one in flat.flats)  # whoever still holds it
    loss(other, 0).backward()
    assert all(one.whole.grad is None for one in flat.flats)
    assert all(part.grad is not None for one in flat.flats for part in one.parts)


@pytest.mark.parametrize("chosen", [0, 2])
def test_a_group_of_which_nothing_is_chosen_stays(chosen: int) -> None:
    model = Model()
    flat = FlatGroups(model.groups())
    flat.join(list(model.weights)[1 : 1 + chosen])
    assert [len(group["params"]) for group in flat.held] == [3, 3 - max(0, chosen - 1)]
    assert len(flat.flats) == bool(chosen)
