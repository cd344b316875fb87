"""How fast a step of SimCSE is on a card, beside its limit and sentence-transformers, and what takes longest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from made_up import corpus
from steps import train_with_peer

from card.bench import Bench, Figure, apart, trained
from trainers.engine.meter import peak
from trainers.engine.world import GROUP, Precision, Progress

EPOCH = 1_000_000  # sentences of unsupervised SimCSE
BARS = {64: 130.0, 512: 81.0}  # seconds of that epoch on an H200, by batch
LONGEST = 8  # of what a step asks for, shown


def limits(bench: Bench) -> Iterator[Figure]:
    """One large product of matrices."""
    precisions: tuple[Precision, ...] = ("bf16", "fp32") if bench.on_card else ("fp32",)
    for precision in precisions:
        yield Figure(f"limit, {precision}", peak(bench.device, precision) / 1e12, "TFLOP/s")


def training(bench: Bench) -> Iterator[Figure]:
    """SimCSE's steps, an epoch of a million sentences from them, and then the same by sentence-transformers."""
    rates = dict[str, float]()
    settings = list(product(bench.sizes.shapes, bench.sizes.batches))
    for shape, batch in settings:
        _, _, steps, cost = trained(bench, shape, batch, bench.precision)
        where, usual = f"{shape}, batch {batch}, {bench.precision}", median(steps)
        rates[where] = 2 * batch / usual
        yield Figure(f"{where}: texts a second", rates[where], "1/s")
        reached = cost["flops"] / bench.sizes.steps / usual  # the first step sets libraries up
        share = f"{reached / peak(bench.device, bench.precision):.1%} of the limit"
        yield Figure(f"{where}: reached", reached / 1e12, "TFLOP/s", share)
        bar = f"bar {BARS[batch]:.0f} s on an H200" if batch in BARS and shape == "BERT-base" else ""
        yield Figure(f"{where}: SimCSE epoch of {EPOCH:,}", EPOCH / batch * usual, "s", bar)
    for shape, batch in settings if bench.on_card else ():
        with patch("trainers.encoders.graphs.graphs_of", lambda *_: None):
            steps = trained(bench, shape, batch, bench.precision, steps=min(25, bench.sizes.steps))[2]
        where = f"{shape}, batch {batch}, {bench.precision}"
        each = 2 * batch / median(steps)
        beside = f"as graphs {rates[where] / each:.2f} x as fast"
        yield Figure(f"{where}: kernel by kernel, texts a second", each, "1/s", beside)
    for (shape, batch), steps in zip(settings, apart(bench, peers, settings), strict=True):
        where = f"{shape}, batch {batch}, {bench.precision}"
        theirs = 2 * batch / median(steps)
        beside = f"ours is {rates[where] / theirs:.2f} x as fast"
        yield Figure(f"{where}: sentence-transformers", theirs, "1/s", beside)


def peers(bench: Bench, settings: Sequence[tuple[str, int]]) -> list[np.ndarray]:
    return [peer(bench, *each) for each in settings]


def peer(bench: Bench, shape: str, batch: int) -> np.ndarray:
    """Wall seconds of the steps of sentence-transformers over the same encoder, sentences and loss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    for name in GROUP:
        os.environ.pop(name, None)  # left by steps of ours: its trainer would look for other workers
    if bench.on_card:
        os.environ.pop("TOKENIZERS_PARALLELISM", None)  # ours too: it would have all cores
    body = models.Transformer(str(bench.backbone(shape)), max_seq_length=bench.sizes.pieces)
    pooled = models.Pooling(body.get_embedding_dimension(), pooling_mode="cls")
    model = SentenceTransformer(modules=[body, pooled], device=bench.device, trust_remote_code=False)
    steps = min(30, bench.sizes.steps)
    rows = list(corpus(max(bench.sizes.sentences, batch)).sentences[:])
    rows = (rows * (1 + steps * batch // len(rows)))[: steps * batch]
    data, loss = Dataset.from_dict({"anchor": rows, "positive": rows}), MultipleNegativesRankingLoss(model)
    own = {"use_cpu": not bench.on_card, "bf16": bench.on_card}
    return train_with_peer(model, data, loss, steps=steps, batch=batch, seed=0, **own)[:, 0]


def profile(bench: Bench) -> Iterator[Figure]:
    """What a step asks the device for, how long that is at work on it, and what of it takes longest.

    A step that is much longer than its work waits for the processor, which asks.
    """
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity

    on, kind = (
        (ProfilerActivity.CPU, DeviceType.CPU) if not bench.on_card else (ProfilerActivity.CUDA, DeviceType.CUDA)
    )
    steps = min(20, bench.sizes.steps)
    watched = steps // 4
    for shape, batch in product(bench.sizes.shapes, bench.sizes.batches):
        found = torch.profiler.profile(activities=[on], acc_events=True)

        def begin(progress: Progress, found: torch.profiler.profile = found) -> None:
            if progress.step == steps - watched:
                bench.wait()
                found.start()
            if progress.step == steps:
                bench.wait()
                found.stop()

        spent = trained(bench, shape, batch, bench.precision, steps=steps, hear=begin)[2]
        usual = median(spent[:-watched])
        events = [one for one in found.key_averages() if not one.is_user_annotation]  # which span others
        asked = [one for one in events if one.device_type == kind and _own_time(one, kind)]
        asked.sort(key=lambda one: _own_time(one, kind), reverse=True)
        where = f"{shape}, batch {batch}, {bench.precision}"
        busy = sum(_own_time(one, kind) for one in asked) / watched
        yield Figure(f"{where}: asked of the device", sum(one.count for one in asked) / watched, "a step")
        yield Figure(f"{where}: at work", busy / 1000, "ms a step", f"{busy / 1e6 / usual:.0%} of a step")
        for one in asked[:LONGEST]:
            each = f"{one.count / watched:g} a step"
            yield Figure(f"{where}: {one.key[:60]}", _own_time(one, kind) / watched / 1000, "ms a step", each)


def _own_time(event: Any, kind: Any) -> float:
    """Microseconds of an event itself, of all times that it came."""
    return float(event.self_cpu_time_total if kind.name == "CPU" else event.self_device_time_total)
