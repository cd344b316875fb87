"""What is measured on a card: sizes, a device, the steps of a training, and a row of the results."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from made_up import corpus
from steps import Clock

from semray.testing import tiny_backbone
from trainers.encoders.captured_pass import aside, captured
from trainers.engine.meter import Meter
from trainers.engine.world import Precision, Progress, World
from trainers.san.settings import Settings
from trainers.san.training import fit


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured. shapes: layers, width, heads. lanes: processes that share the device.

    vocabulary: rows of the word table, which costs a step its gradient and its update.
    """

    shapes: Mapping[str, tuple[int, int, int]]
    vocabulary: int
    batches: tuple[int, ...]
    steps: int
    sentences: int
    lanes: tuple[int, ...]
    pieces: int  # at most, of a sentence
    stacks: tuple[int, ...]  # encoders that train as one


CARD = Sizes(
    shapes={"MiniLM": (6, 384, 12), "BERT-base": (12, 768, 12)},
    vocabulary=30_522,
    batches=(64, 512),
    steps=100,
    sentences=51_200,
    lanes=(1, 2, 4),
    pieces=32,
    stacks=(2, 4, 8),
)
TINY = Sizes(
    shapes={"tiny": (2, 32, 4)},
    vocabulary=200,
    batches=(8,),
    steps=4,
    sentences=64,
    lanes=(1,),
    pieces=32,
    stacks=(2,),
)


@dataclass(frozen=True)
class Figure:
    """One row of the results."""

    what: str
    figure: float | str
    unit: str
    beside: str = ""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where everything is measured. device: "cuda:0" or "cpu"."""

    device: str
    sizes: Sizes
    folder: Path

    @property
    def on_card(self) -> bool:
        return self.device != "cpu"

    @property
    def precision(self) -> Precision:
        """What one would train in there."""
        return "bf16" if self.on_card else "fp32"

    def backbone(self, shape: str) -> Path:
        """The folder of a BERT of this shape."""
        place = self.folder / shape
        if not place.exists():
            layers, width, heads = self.sizes.shapes[shape]
            tiny_backbone(place, layers=layers, width=width, heads=heads, vocabulary=self.sizes.vocabulary)
        return place

    def seconds(self, act: Callable[[], object], times: int = 5) -> float:
        """Of one call, the median, the first left out."""
        spent = []
        for _ in range(times + 1):
            self.wait()
            began = time.perf_counter()
            act()
            self.wait()
            spent.append(time.perf_counter() - began)
        return median(spent[1:])

    def wait(self) -> None:
        if self.on_card:
            torch.cuda.synchronize()

    def release(self) -> None:
        """Give the device back what this process keeps of it and has no use for."""
        gc.collect()
        if self.on_card:
            torch.cuda.empty_cache()


def trained(
    bench: Bench,
    shape: str,
    batch: int,
    precision: Precision,
    *,
    steps: int = 0,
    hear: Callable[[Progress], None] = lambda _: None,
    **given: Any,
) -> tuple[Any, list[Progress], np.ndarray, dict[str, float]]:
    """SimCSE's steps: the encoder, its curve, wall seconds of each step, and what it cost. hear: after each."""
    clock, meter = Clock(), Meter(bench.device, precision)

    def report(progress: Progress) -> None:
        clock.tick()
        hear(progress)

    steps = steps or bench.sizes.steps
    settings = Settings(batch_size=batch, steps=steps, max_length=bench.sizes.pieces, learning_rate=1e-5, **given)
    world = World(device=bench.device, precision=precision, report=report, spent=meter.add)
    rows = corpus(max(bench.sizes.sentences, batch))
    encoder, curve = fit(settings, bench.backbone(shape), rows, 0, world)
    return encoder, curve, clock.durations()[:, 0], meter.take()


def replayed(bench: Bench, act: Callable[[], object], times: int = 20) -> float:
    """Seconds of one call, on a card without the time to ask for what it does."""
    if not bench.on_card:
        return bench.seconds(act)
    with aside(torch.device(bench.device)):
        act()
        replay = captured(lambda: [act() for _ in range(times)], None)
    return bench.seconds(replay) / times


def apart(bench: Bench, act: Callable[..., Any], *given: Any) -> Any:
    """On a card in a process of its own, as whoever uses it alone would run it; else here."""
    if not bench.on_card:
        return act(bench, *given)
    bench.release()  # a small card has not room for what this process keeps as well
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(act, bench, *given).result()
