"""The runs of one arm in a crossed design, where each random stream has its own seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from orchestration.study.run import Run


def with_seeds(run: Run, seeds: Mapping[str, int]) -> Run:
    """The run with these seeds of its streams. If all are equal, it is the ordinary run of that seed.

    The first stream's seed is the run's seed, which also serves everything outside the named streams.
    """
    first, *_ = seeds.values()
    others = {stream: seed for stream, seed in seeds.items() if seed != first}
    return replace(run, seed=first, streams=others, former="" if others or first != run.seed else run.former)


def alone_changed(run: Run, streams: Sequence[str], first: int, second: int) -> dict[str, Run]:
    """Stream -> the run in which only that stream has the second seed, and all others the first."""
    return {
        changed: with_seeds(run, {stream: second if stream == changed else first for stream in streams})
        for changed in streams
    }


def runs_of_design(run: Run, streams: Sequence[str], seeds: Sequence[int], design: np.ndarray) -> tuple[Run, ...]:
    """One run for each row of `design` (runs, streams), whose numbers are indices into `seeds`."""
    return tuple(
        with_seeds(run, {s: seeds[level] for s, level in zip(streams, row, strict=True)}) for row in design
    )


def level_seeds(known: Sequence[int], levels: int) -> tuple[int, ...]:
    """So many different seeds, known ones first, since their runs may be finished."""
    first = max(known, default=-1) + 1
    return (*known, *range(first, first + levels))[:levels]
