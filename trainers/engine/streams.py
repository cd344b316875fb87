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

# What may have a seed of its own, and the first words of the names that belong to it. What has another name goes
# with the run's seed.
STREAMS = {
    "data": ("data",),
    "init": ("init", "process"),
    "dropout": ("dropout",),
    "negatives": ("negatives", "others"),
}
_OF_WORD = {word: stream for stream, words in STREAMS.items() for word in words}
_apart: Mapping[str, int] = {}  # of the run in this process: stream -> its seed, where that is not the run's


@contextmanager
def seeded(apart: Mapping[str, int]) -> Iterator[None]:
    """Give these streams seeds of their own, in this process and all its threads, until the block ends.

    A run that was given up may end its block later than the next one begins it: that one's seeds stand.
    """
    global _apart
    assert apart.keys() <= STREAMS.keys(), f"no such stream: {sorted(apart.keys() - STREAMS.keys())}"
    _apart = mine = dict(apart)
    try:
        yield
    finally:
        if _apart is mine:
            _apart = {}


def number(seed: int, *name: object) -> int:
    """The 64-bit number of a stream: blake2b of seed and name, the same in every process and on every machine."""
    stream = _OF_WORD.get(str(name[0]).partition("/")[0], "") if name else ""
    return keyed(_apart.get(stream, seed), *name)


def numpy_stream(seed: int, *name: object) -> np.random.Generator:
    """A fresh numpy generator of that name, e.g. `numpy_stream(3, "data", "t2d", step)`."""
    return np.random.default_rng(number(seed, *name))


def torch_stream(seed: int, *name: object) -> torch.Generator:
    """A fresh CPU torch generator of that name, e.g. `torch_stream(3, "init")`."""
    import torch

    return torch.Generator().manual_seed(number(seed, *name))


def draw_linear(layer: nn.Linear, stream: torch.Generator) -> None:
    """Give a layer, wherever it lies, the weights and then the biases that torch would: uniform, ±1/√inputs."""
    import torch

    bound = layer.in_features**-0.5
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=stream))
