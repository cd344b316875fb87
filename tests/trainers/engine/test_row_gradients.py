"""Gradients of large tables, found as rows and laid for the optimizer, against those that torch finds dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from tests.tiny import tiny_corpus
from trainers.concept import training as concept
from trainers.concept.settings import Settings
from trainers.encoders.stack import fit_together
from trainers.engine import loop, row_gradients
from trainers.engine.loop import Diverged, Recipe, fit
from trainers.engine.optimisation import clip, parameter_groups
from trainers.engine.row_gradients import MANY, RowGradients
from trainers.engine.streams import torch_stream
from trainers.engine.world import Stopped, World

WIDTH = 16


class Words(nn.Module):
    """Means of word embeddings, scored by a head; tied: by the embeddings themselves."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embeddings = nn.Embedding(MANY, WIDTH, padding_idx=0)
        self.positions = nn.Embedding(3, WIDTH)
        self.head = nn.Linear(WIDTH, 1)
        self.tied = tied

    def forward(self, ids: Tensor) -> Tensor:
        means = (self.embeddings(ids) + self.positions.weight).mean(1)
        return torch.tanh(means) @ self.embeddings.weight.T if self.tied else self.head(means)


@dataclass(frozen=True, eq=False)
class Ids:
    """(B, 3); a word may stand in it more than once, and of each step others do."""

    ids: Tensor

    def __len__(self) -> int:
        return len(self.ids)


def ids(step: int) -> Ids:
    drawn = torch.randint(0, 40, (8, 3), generator=torch_stream(0, "ids", step))
    return Ids(drawn + 40 * (step % 3))


def once(encode: loop.Encode, batch: Ids) -> dict[str, Tensor]:
    return {"square": (encode(batch.ids) - 1).square().mean()}


def twice(encode: loop.Encode, batch: Ids) -> dict[str, Tensor]:
    """Of one step two lookups, of other words and of the same."""
    return {**once(encode, batch), "other": encode(batch.ids + 7).square().mean()}


def trained(loss: Any = once, limit: float = 0.01, model: Words | None = None) -> Words:
    model = model or Words()
    groups = parameter_groups(model, depth=0, learning_rate=1e-2, weight_decay=0.1)
    recipe = Recipe(steps=7, warmup=2, clip_norm=limit)
    fit(model, loss, ids, groups=groups, recipe=recipe, seed=0, world=World())
    return model


@contextmanager
def heard(look: Callable[[Optimizer], None]) -> Iterator[None]:
    """While this runs, look at every optimizer before each of its steps."""
    handle = register_optimizer_step_pre_hook(lambda optimizer, given, named: look(optimizer))
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize("limit", [0.0, 0.01])
@pytest.mark.parametrize("loss", [once, twice])
def test_training_is_that_of_dense_gradients(loss: Any, limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = trained(loss, limit)
    monkeypatch.setattr(row_gradients, "MANY", MANY + 1)
    dense = trained(loss, limit)
    for (name, one), other in zip(rows.named_parameters(), dense.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, msg=name)
    assert not torch.equal(rows.embeddings.weight, Words().embeddings.weight)


def test_the_optimizer_gets_the_rows_of_its_step_in_one_array_that_is_kept() -> None:
    model, found = Words(), []

    def look(_: Optimizer) -> None:
        gradient = model.embeddings.weight.grad
        assert gradient is not None
        assert not gradient.is_sparse
        assert gradient.shape == (MANY, WIDTH)
        found.append((gradient.data_ptr(), set(gradient.abs().sum(1).nonzero().flatten().tolist())))

    with heard(look):
        trained(model=model)
    assert len({place for place, _ in found}) == 1
    read = [set(ids(step).ids.flatten().tolist()) - {0} for step in range(7)]  # 0 is padding, which learns nothing
    assert [rows for _, rows in found] == read
    assert model.embeddings.weight.grad is None
    assert not model.embeddings.sparse


def test_a_table_that_learns_as_weights_too_has_a_dense_gradient_of_its_own() -> None:
    tied, whole = Words(tied=True), []
    with heard(lambda _: whole.append(int((tied.embeddings.weight.grad != 0).any(1).sum()))):  # type: ignore[operator, union-attr]
        trained(model=tied)
    assert whole == [MANY] * 7


def test_a_table_of_which_a_step_reads_nothing_is_left_as_it_is() -> None:
    """Not even decayed, as torch has it."""

    class Two(Words):
        def __init__(self) -> None:
            super().__init__()
            self.others = nn.Embedding(MANY, WIDTH)

        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) + (self.others(ids).mean() if bool(ids.min() >= 80) else 0.0)

    model, seen = Two(), []
    with heard(lambda _: seen.append(model.others.weight.detach().clone())):
        trained(model=model)
    moved = [
        not torch.equal(one, other) for one, other in zip(seen, [*seen[1:], model.others.weight], strict=True)
    ]
    assert moved == [False, False, True, False, False, True, False]


def test_frozen_and_small_tables_are_left_alone() -> None:
    model = Words()
    model.embeddings.requires_grad_(False)
    with RowGradients(model.modules()).recording():
        assert not model.embeddings.sparse
        assert not model.positions.sparse


@pytest.mark.parametrize("limit", [0.001, 1e9])
def test_rows_are_clipped_as_the_dense_gradient_is(limit: float) -> None:
    rows, dense = Words(), Words()
    tables = RowGradients(rows.modules())
    with tables.recording():
        once(rows, ids(0))["square"].backward()
    once(dense, ids(0))["square"].backward()
    tables.sum_repeated()
    for model in (rows, dense):
        clip(model.parameters(), limit)
    assert rows.embeddings.weight.grad.is_sparse  # type: ignore[union-attr]
    tables.make_dense()
    for one, other in zip(rows.parameters(), dense.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-9)


def test_a_run_that_ends_early_leaves_the_tables_as_they_were() -> None:
    model = Words()
    with pytest.raises(Diverged):
        trained(lambda encode, batch: {"far": once(encode, batch)["square"] * torch.inf}, model=model)
    assert not model.embeddings.sparse


CASES = {
    "plain": ("fp32", {}),
    "negatives": ("fp32", {"hard_negatives": True}),
    "negatives in bf16": ("bf16", {"hard_negatives": True}),
    "two passes": (
        "fp32",
        {"hard_negatives": True, "readout": "weighted", "layers": 2, "deep_supervision": "beside"},
    ),
    "parts": ("fp32", {"hard_negatives": True, "micro_batch": 5}),
}


@pytest.mark.parametrize(("precision", "changed"), CASES.values(), ids=CASES)
def test_an_encoder_learns_what_it_does_by_dense_gradients(
    backbone: Path, precision: Any, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Alone, resumed from a checkpoint, and in a stack, which has no parts."""
    settings = Settings(steps=6, batch_size=6, max_length=32, **changed)

    def learnt(world: World) -> np.ndarray:
        encoder, _ = concept.fit(settings, backbone, CORPUS, 0, world)
        return encoder.encode(TEXTS)

    world, seen = World(precision=precision), []
    dense = learnt(world)
    monkeypatch.setattr(row_gradients, "MANY", 1)
    with laid() as tables:
        rows = learnt(world)
        assert len(tables) >= 6
        assert np.allclose(rows, dense, atol=ROUNDING[precision])
        resumable = replace(world, scratch=tmp_path, report=seen.append)
        with pytest.raises(Stopped):
            learnt(replace(resumable, stopping=lambda: len(seen) == 4))
        assert np.array_equal(learnt(resumable), rows)
        if settings.micro_batch is None:
            for outcome in fit_together([learnt] * 2, [world] * 2):
                assert not isinstance(outcome, Exception)
                assert np.allclose(outcome, rows, atol=10 * ROUNDING[precision])


@contextmanager
def laid() -> Iterator[list[int]]:
    """Counts gradients that were found as rows."""
    found: list[int] = []
    lay = row_gradients._Table.make_dense

    def heard(table: Any, gradient: Tensor) -> None:
        found.append(len(gradient.values()))
        lay(table, gradient)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_gradients._Table, "make_dense", heard)
        yield found


ROUNDING = {"fp32": 1e-6, "bf16": 5e-3}
CORPUS, TEXTS = tiny_corpus(40), ["a cup of tea", "the fire"]
