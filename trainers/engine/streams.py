"""Named random streams: every draw of a run comes from (seed, name), never from one counter that all share.

Two arms with one seed therefore see the same data in the same order even when one of them draws more:
what it draws beyond the other comes from a stream of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from corpora.sources.texts import keyed

if TYPE_CHECKING:
    import torch


def number(seed: int, *name: object) -> int:
    """The 64-bit number of a stream: blake2b of seed and name, the same in every process and on every machine."""
    return keyed(seed, *name)


def numpy_stream(seed: int, *name: object) -> np.random.Generator:
    """A fresh numpy generator of that name, e.g. `numpy_stream(3, "data", "t2d", step)`."""
    return np.random.default_rng(number(seed, *name))


def torch_stream(seed: int, *name: object) -> torch.Generator:
    """A fresh CPU torch generator of that name, e.g. `torch_stream(3, "init")`."""
    import torch

    return torch.Generator().manual_seed(number(seed, *name))
