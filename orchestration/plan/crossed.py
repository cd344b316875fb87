"""The runs of a crossed design over random streams: one arm, in which every stream has a seed of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from orchestration.study.run import Run


def with_seeds(run: Run, seeds: Mapping[str, int]) -> Run:
    """The run with a seed for each of these streams. Where all are one seed, it is the ordinary run of that seed.

    The first stream's is the seed of the run, which what has no stream of its own goes with.
    """
    own, *_ = seeds.values()
    apart = {stream: seed for stream, seed in seeds.items() if seed != own}
    return replace(run, seed=own, streams=apart, former="" if apart or own != run.seed else run.former)


def alone_changed(run: Run, streams: Sequence[str], first: int, second: int) -> dict[str, Run]:
    """For every stream the run in which it alone has the second seed, and all others the first."""
    return {
        changed: with_seeds(run, {stream: second if stream == changed else first for stream in streams})
        for changed in streams
    }


def of_design(run: Run, streams: Sequence[str], seeds: Sequence[int], design: np.ndarray) -> tuple[Run, ...]:
    """The runs of a design (runs, streams) of levels, of which each is the seed in that place."""
    return tuple(
        with_seeds(run, {s: seeds[level] for s, level in zip(streams, row, strict=True)}) for row in design
    )


def level_seeds(known: Sequence[int], levels: int) -> tuple[int, ...]:
    """As many different seeds: the known ones first, whose runs may be there already."""
    first = max(known, default=-1) + 1
    return (*known, *range(first, first + levels))[:levels]
