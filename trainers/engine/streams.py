"""Named random streams: every draw of a run comes from (seed, name), never from one counter that all share.

Two arms with one seed therefore see the same data in the same order even when one of them draws more:
what it draws beyond the other comes from a stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from corpora.sources.texts import keyed

if TYPE_CHECKING:
    import torch
    from torch import nn

# Streams that may have a seed of their own -> the first words of the stream names that belong to each. Names with
# any other first word use the run's seed.
STREAMS = {
    "data": ("data",),
    "init": ("init", "process"),
    "dropout": ("dropout",),
    "negatives": ("negatives", "others"),
}
_STREAM_OF_WORD = {word: stream for stream, words in STREAMS.items() for word in words}
_own_seeds: Mapping[str, int] = {}  # of the run in this process: stream -> its seed, if that is not the run's


@contextmanager
def seeded(own_seeds: Mapping[str, int]) -> Iterator[None]:
    """Give these streams seeds of their own, in this process and all its threads, until the block ends.

    An abandoned run may leave its block after the next run has entered its own: the next run's seeds then stay.
    """
    global _own_seeds
    assert own_seeds.keys() <= STREAMS.keys(), f"no such stream: {sorted(own_seeds.keys() - STREAMS.keys())}"
    _own_seeds = mine = dict(own_seeds)
    try:
        yield
    finally:
        if _own_seeds is mine:
            _own_seeds = {}


def number(seed: int, *name: object) -> int:
    """The 64-bit seed of a stream: blake2b of the run's seed and the name, the same on every machine."""
    stream = _STREAM_OF_WORD.get(str(name[0]).partition("/")[0], "")
    return keyed(_own_seeds.get(stream, seed), *name)


def numpy_stream(seed: int, *name: object) -> np.random.Generator:
    """A fresh numpy generator of that name, e.g. `numpy_stream(3, "data", "t2d", step)`."""
    return np.random.default_rng(number(seed, *name))


def torch_stream(seed: int, *name: object) -> torch.Generator:
    """A fresh CPU torch generator of that name, e.g. `torch_stream(3, "init")`."""
    import torch

    return torch.Generator().manual_seed(number(seed, *name))


def seed_global(number: int) -> None:
    """Seed torch's global streams of the CPU and of a GPU in use, as `torch.manual_seed` does.

    That one also writes its caller's stack down for each kind of device that is not in use, for which a step on a
    GPU has no time.
    """
    import torch

    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)


def draw_linear(layer: nn.Linear, stream: torch.Generator) -> None:
    """Draw a layer's weights, then its biases, as torch does: uniform in ±1/√inputs; on any device."""
    import torch

    bound = layer.in_features**-0.5
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=stream))
