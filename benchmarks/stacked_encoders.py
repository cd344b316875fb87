"""Seeds of one arm as a stack of encoders, against one after another.

    python benchmarks/stacked_encoders.py [--steps 8] [--repeats 3]

SimCSE over made-up sentences of 6 to 24 words, batches of 16, encoders of random weights in two shapes; both ways
in one process of one thread, interleaved. On a CPU a stack need not win: its products are as many, and a core is
busy with those of one encoder already. Where it breaks even on a card is a section of gpu.py.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from made_up import corpus
from steps import Clock, load_of_machine, one_quiet_thread, options_of, repeated
from tables import save

from trainers.encoders.stack import fit_together
from trainers.engine.world import World

SHAPES = {"2 layers of 128": (2, 128, 2), "6 layers of 384 (MiniLM)": (6, 384, 12)}
STACKS = (2, 4)
BATCH = 16
Fit = Callable[[int, World], Any]  # seed, world


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    options = options_of(__doc__, steps=8)
    one_quiet_thread()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name, shape in SHAPES.items():
            fit = simcse(Path(place) / name, shape, options.steps)
            for stack in STACKS:
                alone, together = [], []
                for _ in range(options.repeats):
                    alone.append(one_by_one(fit, World(), range(2)))
                    together.append(as_a_stack(fit, World(), range(stack)))
                ours, theirs = (1000 * median(np.concatenate(parts)[:, 1]) for parts in (together, alone))
                rows.append({
                    "encoder": name,
                    "encoders in the stack": stack,
                    "one by one, CPU ms a step": theirs,
                    "stacked, CPU ms a step of each": ours,
                    "speed": f"{theirs / ours:.2f} x",
                })  # fmt: skip
    save(
        "stacked_encoders",
        "Seeds of one arm as a stack of encoders, one CPU thread, fp32",
        rows,
        [
            f"SimCSE, {BATCH} sentences of 6 to 24 words a step, random weights; {repeated(options)}.",
            load_of_machine(),
            "CUDA: the same code runs there, and gpu.py measures it; not run on a card here.",
        ],
        packages=("torch", "deepspeed", "transformers"),
    )


def simcse(place: Path, shape: tuple[int, int, int], steps: int) -> Fit:
    """SimCSE's training of a BERT of that shape: layers, width, heads."""
    from semray.testing import tiny_backbone
    from trainers.san.settings import Settings
    from trainers.san.training import fit

    layers, width, heads = shape
    tiny_backbone(place, layers=layers, width=width, heads=heads)
    settings, rows = Settings(batch_size=BATCH, steps=steps, learning_rate=1e-5), corpus(4096)
    return partial(fit, settings, place, rows)


def one_by_one(fit: Fit, world: World, seeds: Sequence[int]) -> np.ndarray:
    """Wall and CPU seconds of each step of each. -> (steps, 2)."""
    clocks = [Clock() for _ in seeds]
    for seed, clock in zip(seeds, clocks, strict=True):
        fit(seed, replace(world, report=clock.tick))
    return np.concatenate([clock.durations() for clock in clocks])


def as_a_stack(fit: Fit, world: World, seeds: Sequence[int]) -> np.ndarray:
    """Wall and CPU seconds of each step of all, shared out among them. -> (steps, 2)."""
    clock = Clock()  # of the first: the others have had their turn when its next step ends
    worlds = [replace(world, report=clock.tick) if seed == seeds[0] else world for seed in seeds]
    for outcome in fit_together([partial(fit, seed) for seed in seeds], worlds):
        if isinstance(outcome, Exception):
            raise outcome
    return clock.durations() / len(seeds)


if __name__ == "__main__":
    main()
