"""What dropout of a step of B1 costs on a CPU: semray's 16 bits a value beside torch's Bernoulli numbers.

    python benchmarks/dropout_draws.py [--repeats 40]

Both forward and back, one thread, repeats interleaved, at the sizes of a step of all-MiniLM-L6-v2: hidden states
of 1,100 tokens, and attention of 96 texts of 12 tokens.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
from steps import load_of_machine
from tables import save
from torch import Tensor

from trainers.encoders.dropout import dropout

RATE = 0.1
PLACES = {"hidden states": (1, 1_100, 384), "attention": (96, 12, 12, 12)}
WAYS: dict[str, Callable[[Tensor, float], Tensor]] = {"torch": F.dropout, "semray": dropout}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rows = []
    for place, shape in PLACES.items():
        values, gradient = torch.randn(shape, requires_grad=True), torch.randn(shape)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(repeats):
            for way, drop in WAYS.items():
                seconds[way].append(cpu_of(drop, values, gradient))
        usual = {way: median(each) for way, each in seconds.items()}
        rows += [
            {
                "place": place,
                "dropout": way,
                "CPU ms": round(1000 * spent, 2),
                "speed": f"{usual['torch'] / spent:.1f} x",
            }
            for way, spent in usual.items()
        ]
    save(
        "dropout_draws",
        "Dropout of a step, forward and back, one CPU thread",
        rows,
        [f"Median over {repeats} interleaved repeats. Rate {RATE:g}.", load_of_machine()],
        packages=("torch",),
    )


def cpu_of(drop: Callable[[Tensor, float], Tensor], values: Tensor, gradient: Tensor) -> float:
    """CPU seconds of one dropout."""
    began = time.process_time()
    drop(values, RATE).backward(gradient)
    return time.process_time() - began


if __name__ == "__main__":
    main()
