"""In double precision: what two workers learn from their halves of a batch is what one learns from all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers import together
from trainers.engine.world import World
from trainers.san.batches import SanBatch, columns_of
from trainers.san.hosts import simcse, sncse
from trainers.san.hosts.rows import Rows
from trainers.san.settings import Settings

SIZE, WIDTH, WORKERS = 8, 5, 2
ARMS: dict[str, tuple[dict[str, Any], Callable[..., dict[str, torch.Tensor]]]] = {
    "simcse": ({}, simcse.terms),
    "simcse hince": ({"san": "hince", "negatives": "san", "own_weight": 0.5}, simcse.terms),
    "simcse_sup hince": ({"host": "simcse_sup", "san": "hince", "negatives": "san"}, simcse.terms),
    "sncse hince": ({"host": "sncse", "san": "hince", "negatives": "san", "bml_weight": 0.5}, sncse.terms),
}


def gradients(name: str, rank: int, workers: int) -> dict[str, np.ndarray]:
    """Of this worker's rows of each column, (b, H), in the loss that is the mean over workers."""
    changes, terms = ARMS[name]
    settings, share = Settings(**changes), SIZE // workers
    mine = slice(rank * share, (rank + 1) * share)
    drawn = np.random.default_rng(7)
    whole = {column: drawn.normal(size=(SIZE, WIDTH)) for column in columns_of(settings)}
    keep, keep_negatives = drawn.random((2, SIZE, SIZE)) > 0.2  # some are no negatives of some
    np.fill_diagonal(keep, True)
    states = torch.tensor(np.concatenate([rows[mine] for rows in whole.values()]), requires_grad=True)
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
    world = World(rank=rank, size=workers)
    loss = torch.stack([*terms(Rows.of(states, batch, world), batch, settings).values()]).sum() / workers
    loss.backward()
    assert states.grad is not None
    assert states.grad.dtype == torch.float64
    return dict(zip(whole, states.grad.reshape(len(whole), share, WIDTH).numpy(), strict=True))


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
