"""What a processor does to have a step's gradients clipped and its parameters updated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch

from card.bench import Bench, Figure
from semray.testing import tiny_backbone
from trainers.encoders.encoder import Encoder
from trainers.encoders.graphs import Graphs
from trainers.engine.flat_groups import FlatGroups
from trainers.engine.optimisation import clip, merge_groups, parameter_groups, parameters_of

TIMES = 40
LAYERS, WIDTH, HEADS = 12, 32, 4  # as many tensors as BERT-base, so narrow that the asking takes the time


def update(bench: Bench) -> Iterator[Figure]:
    """Each parameter for itself, and all but the word table as two tensors, as they are where graphs run."""
    folder = tiny_backbone(bench.folder / "narrow", layers=LAYERS, width=WIDTH, heads=HEADS)
    spent = {}
    for flat in (False, True):
        encoder = Encoder.load(folder).to(bench.device)
        groups = FlatGroups(
            merge_groups(parameter_groups(encoder, depth=LAYERS, learning_rate=1e-5, weight_decay=0.01))
        )
        if flat:
            groups.join(Graphs(encoder, ()).parameters)
        spent[flat] = milliseconds(bench, groups.held)
        beside = f"{spent[False] / spent[True]:.1f} x as fast" if flat else ""
        yield Figure(
            f"clipping and AdamW, {len(parameters_of(groups.held))} tensors",
            spent[flat],
            "ms of a processor",
            beside,
        )


def milliseconds(bench: Bench, groups: list[dict[str, Any]]) -> float:
    """Of one update, the median, without what the device does after."""
    held = parameters_of(groups)
    for one in held:
        one.grad = torch.full_like(one, 1e-3)
    optimizer, spent = torch.optim.AdamW(groups, fused=True), []
    for _ in range(TIMES):
        bench.wait()
        began = time.perf_counter()
        clip(held, 1.0)
        optimizer.step()
        spent.append(1000 * (time.perf_counter() - began))
    return median(spent)
