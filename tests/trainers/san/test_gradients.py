"""In double precision: gradients are those of the loss, and two workers' from halves of a batch are one's from all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers import together
from trainers.engine.world import World
from trainers.san.batches import SanBatch, columns_of
from trainers.san.hosts import rankcse, rlrd, simcse, sncse
from trainers.san.hosts.rows import Rows
from trainers.san.settings import Settings
from trainers.san.teachers import Taught, Teachers

SIZE, WIDTH, WORKERS = 8, 5, 2
SAN = {"san": "hince", "negatives": "san"}
TWO = {**SAN, "teachers": ("first", "second")}
ARMS: dict[str, dict[str, Any]] = {
    "simcse": {},
    "simcse hince": {**SAN, "own_weight": 0.5},
    "simcse_sup hince": {**SAN, "host": "simcse_sup"},
    "sncse hince": {**SAN, "host": "sncse", "bml_weight": 0.5},
    "rankcse": {"host": "rankcse", "teachers": ("first",)},
    "rankcse hince": {**TWO, "host": "rankcse", "san_mle": 0.4},
    "rankcse listnet": {**TWO, "host": "rankcse", "rank_loss": "listnet", "conform": "authors"},
    "rlrd fixed": {**TWO, "host": "rlrd", "rl_update": "fixed", "rl_weight": 0.5},
}
TAUGHT = tuple(
    Taught(*np.random.default_rng(seed).normal(size=(3, SIZE, WIDTH)).astype(np.float16)) for seed in (1, 2)
)


def total(settings: Settings, rows: Rows, batch: SanBatch, world: World) -> torch.Tensor:
    """The loss of a step, of this worker's rows."""
    teachers = Teachers(TAUGHT[: len(settings.teachers)], "cpu")
    if settings.host == "rankcse":
        found = rankcse.terms(rows, batch, settings, teachers, world)
    elif settings.host == "rlrd":
        found = rlrd.terms(rows, batch, settings, teachers, None, world)
    else:
        found = (sncse if settings.host == "sncse" else simcse).terms(rows, batch, settings)
    return torch.stack([*found.values()]).sum()


def step(settings: Settings, rank: int, workers: int) -> tuple[dict[str, np.ndarray], SanBatch]:
    """Rows of all workers by column, (B, H), and this worker's batch of them."""
    share = SIZE // workers
    mine = slice(rank * share, (rank + 1) * share)
    drawn = np.random.default_rng(7)
    whole = {column: drawn.normal(size=(SIZE, WIDTH)) for column in columns_of(settings)}
    keep, keep_negatives = drawn.random((2, SIZE, SIZE)) > 0.2  # some are no negatives of some
    np.fill_diagonal(keep, True)
    batch = SanBatch(
        columns=tuple(whole),
        views=None,  # type: ignore[arg-type]
        apart=None,
        stream=0,
        step=0,
        rows=np.arange(SIZE),
        negative_rows=np.arange(SIZE),
        own=np.arange(SIZE)[mine],
        keep=keep[mine],
        keep_negatives=keep_negatives[mine],
    )
    return whole, batch


def gradients(name: str, rank: int, workers: int) -> dict[str, np.ndarray]:
    """Of this worker's rows of each column, (b, H), in the loss that is the mean over workers."""
    settings, world = Settings(**ARMS[name]), World(rank=rank, size=workers)
    whole, batch = step(settings, rank, workers)
    states = torch.tensor(np.concatenate([rows[batch.own] for rows in whole.values()]), requires_grad=True)
    (total(settings, Rows.of(states, batch, world), batch, world) / workers).backward()
    assert states.grad is not None
    assert states.grad.dtype == torch.float64
    return dict(zip(whole, states.grad.reshape(len(whole), -1, WIDTH).numpy(), strict=True))


@pytest.mark.parametrize("name", ARMS)
def test_every_vector_has_the_gradient_of_its_part_in_the_loss(name: str):
    """By finite differences: views of both sides, negations, contradictions and negatives."""
    settings = Settings(**ARMS[name], tau1=0.5, tau2=0.7, rank_tau=0.5)
    whole, batch = step(settings, 0, 1)
    states = torch.tensor(np.concatenate([*whole.values()]), requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda states: total(settings, Rows.of(states, batch, World()), batch, World()), states, fast_mode=True
    )


def _keep(rank: int, size: int, folder: Path) -> None:
    for name in ARMS:
        np.savez(folder / f"{name}-{rank}.npz", **gradients(name, rank, size))


def test_two_workers_have_the_gradients_of_one(tmp_path: Path) -> None:
    """The masks leave out what each of the eight rows may not be told from, so that no worker's half is like the
    other's."""
    together(WORKERS, _keep, tmp_path)
    for name in ARMS:
        alone = gradients(name, 0, 1)
        halves = [np.load(tmp_path / f"{name}-{rank}.npz") for rank in range(WORKERS)]
        for column, expected in alone.items():
            ours = np.concatenate([half[column] for half in halves])
            assert np.abs(expected).max() > 1e-4, (name, column)
            assert ours == pytest.approx(expected, abs=1e-10, rel=1e-10), (name, column)
