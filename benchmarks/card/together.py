"""What shares a card: parts of a batch, stacks of adapters and of encoders, and lanes side by side.

A section imports what it alone needs itself: where that is missing, the others go on.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from itertools import product
from statistics import median
from threading import BrokenBarrierError
from typing import Any

import torch
from made_up import corpus

from card.bench import Bench, Figure, trained
from trainers.engine.world import Precision, Progress, World
from trainers.san.settings import Settings
from trainers.san.training import fit

TOGETHER = 300.0  # seconds that lanes wait for each other
_gate: list[Any] = []  # of this process, where it is one of several lanes


def parts(bench: Bench) -> Iterator[Figure]:
    """A batch in parts: what the second reading costs, and what it saves. In bf16 a card reads by graphs."""
    batch = bench.sizes.batches[-1]
    precisions: tuple[Precision, ...] = ("bf16", "fp32") if bench.on_card else ("fp32",)
    for shape, precision, size in product(bench.sizes.shapes, precisions, (None, batch // 2)):
        if bench.on_card:
            bench.release()
            torch.cuda.reset_peak_memory_stats()
        steps = trained(bench, shape, batch, precision, steps=min(30, bench.sizes.steps), micro_batch=size)[2]
        held = f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB" if bench.on_card else ""
        name = "whole" if size is None else f"{size} texts at a time"
        yield Figure(f"{shape}, batch {batch}, {precision}, {name}", 1000 * median(steps), "ms a step", held)


def adapters(bench: Bench) -> Iterator[Figure]:
    """Arms and seeds of small adapters as one stack, against one after another."""
    import stacked_adapters

    contestants = {"loop": stacked_adapters.plain_loop, "stack": stacked_adapters.one_stack}
    if bench.on_card:
        stacked_adapters.ROUNDS = 2  # its loop asks for more small things than all else here
    else:
        stacked_adapters.STEPS, stacked_adapters.ROUNDS = 2, 1
    for shape in stacked_adapters.SHAPES[: None if bench.on_card else 1]:
        spent = stacked_adapters.milliseconds(contestants, shape, stacked_adapters.made_up_task(), bench.device)
        gain = f"{spent['loop'] / spent['stack']:.1f} x as fast as one by one"
        yield Figure(f"stacked adapters {shape}", spent["stack"], "ms a step of each", gain)


def encoders(bench: Bench) -> Iterator[Figure]:
    """Seeds of one arm as a stack of encoders, against one after another: from how many on it pays."""
    import stacked_encoders

    world = World(device=bench.device, precision=bench.precision)
    steps = min(16, bench.sizes.steps)
    batch = bench.sizes.batches[0]
    settings = Settings(batch_size=batch, steps=steps, max_length=bench.sizes.pieces, learning_rate=1e-5)
    rows = corpus(max(64, batch))
    shape = next(iter(bench.sizes.shapes))
    act = partial(fit, settings, bench.backbone(shape), rows)
    alone = median(stacked_encoders.one_by_one(act, world, range(2))[:, 0])
    for size in bench.sizes.stacks:
        each = median(stacked_encoders.as_a_stack(act, world, range(size))[:, 0])
        gain = f"{alone / each:.2f} x as fast as one by one"
        yield Figure(f"{shape}, batch {batch}, {size} encoders stacked", 1000 * each, "ms a step of each", gain)


def shared(bench: Bench) -> Iterator[Figure]:
    """Lanes on one device, each with its share of the memory: what all of them do together, begun together."""
    for lanes in bench.sizes.lanes:
        if not bench.on_card:
            rates = [_lane(bench, lanes)]
        else:
            spawn = multiprocessing.get_context("spawn")
            gate = spawn.Barrier(lanes)
            with ProcessPoolExecutor(lanes, mp_context=spawn, initializer=_gated, initargs=(gate,)) as processes:
                rates = _of_all([processes.submit(_lane, bench, lanes) for _ in range(lanes)])
        yield Figure(f"{lanes} lane{'s' * (lanes > 1)} on the device", sum(rates), "texts a second")


def _of_all(lanes: Sequence[Future[float]]) -> list[float]:
    """What each lane tells. Of those that fail, one that did so by itself is heard before those that waited."""
    failed = [error for lane in lanes if (error := lane.exception()) is not None]
    for error in sorted(failed, key=lambda one: isinstance(one, BrokenBarrierError)):
        raise error
    return [lane.result() for lane in lanes]


def _gated(gate: Any) -> None:
    _gate.append(gate)


def _lane(bench: Bench, lanes: int) -> float:
    if bench.on_card:
        torch.cuda.set_per_process_memory_fraction(1 / lanes)
    shape, batch = next(iter(bench.sizes.shapes)), bench.sizes.batches[0]

    def begin(progress: Progress) -> None:
        if progress.step == 2 and _gate:
            _gate[0].wait(TOGETHER)

    try:
        steps = trained(bench, shape, batch, bench.precision, steps=min(100, bench.sizes.steps), hear=begin)[2]
    except Exception:
        if _gate:
            _gate[0].abort()  # the others would wait for this one
        raise
    return 2 * batch / median(steps)
