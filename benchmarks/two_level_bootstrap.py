"""Seed x item bootstrap of a whole study: 10 seeds, 7 tasks of 1,500 to 9,000 items, 10,000 resamples.

    python benchmarks/two_level_bootstrap.py [--resamples 10000] [--workers 2]

The peer is the plain loop: draw seeds and items, repeat the drawn items, compute the metric of every drawn
seed and arm anew (mid-ranks by numpy, as `item_metrics` does). It is timed on a few resamples and
extrapolated, because the whole takes hours.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np
from tables import save

from evaluators.metrics.item_metrics import aggregate
from evaluators.metrics.scores import Aggregate
from evaluators.significance.item_bootstrap import resampled_deltas, two_level_of
from evaluators.significance.paired_items import ItemScores

SIZES = (1_500, 2_000, 3_000, 4_500, 5_000, 7_000, 9_000)
SEEDS = 10
KINDS: tuple[Aggregate, ...] = ("mean", "pearson", "balanced_accuracy", "auc", "spearman")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--naive", type=int, default=3, help="resamples per task for the plain loop")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rows = [row_of(kind, options.resamples, options.naive, options.workers) for kind in KINDS]
    save(
        "two_level_bootstrap",
        f"Two-level bootstrap: {SEEDS} seeds, {len(SIZES)} tasks, {options.resamples:,} resamples",
        rows,
        [
            f"Items per task: {', '.join(f'{size:,}' for size in SIZES)}; {SEEDS} seeds of two trained arms.",
            f"{options.workers} threads. Seconds are wall time with {load()}; CPU seconds depend less on it.",
            "Every resample is exact: tests compare it with the plain loop to 1e-8.",
            f"The plain loop is extrapolated from {options.naive} resamples per task.",
            "Peak memory is that of the whole process up to the row.",
        ],
    )


def load() -> str:
    return f"a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def row_of(kind: Aggregate, resamples: int, naive: int, workers: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    tasks = [task(kind, size, rng) for size in SIZES]
    start, cpu = time.perf_counter(), time.process_time()
    for items in tasks:
        deltas = resampled_deltas(items, rng, resamples, workers)
        assert deltas is not None
        two_level_of(deltas, rng)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.process_time()
    for items in tasks:
        plain_loop(items, naive, rng)
    plain = (time.process_time() - start) * resamples / naive
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "metric of all 7 tasks": kind,
        "seconds": round(seconds, 1),
        "CPU seconds": round(cpu, 1),
        "plain loop, CPU seconds (extrapolated)": round(plain),
        "times less CPU": round(plain / cpu, 1),
        "peak memory, GiB": round(peak, 2),
    }


def task(kind: Aggregate, size: int, rng: np.random.Generator) -> ItemScores:
    gold = rng.normal(size=size)
    arms = [gold + scale * rng.normal(size=(SEEDS, size)) for scale in (1.0, 1.1)]
    ids = tuple(map(str, range(size)))
    labels = (gold > 0).astype(float)
    return ItemScores(
        aggregate=kind,
        treatment=arms[0],
        control=arms[1],
        gold=labels if kind in ("auc", "balanced_accuracy") else gold,
        item_ids=ids,
        group_ids=ids,
    )


def plain_loop(items: ItemScores, resamples: int, rng: np.random.Generator) -> np.ndarray:
    seeds, size = items.treatment.shape
    assert items.gold is not None
    replicates = np.empty(resamples)
    for b in range(resamples):
        taken = rng.integers(0, size, size)
        gold = items.gold[taken]
        replicates[b] = np.mean(
            [
                aggregate(items.aggregate, items.treatment[seed, taken], gold)
                - aggregate(items.aggregate, items.control[seed, taken], gold)
                for seed in rng.integers(0, seeds, seeds)
            ]
        )
    return replicates


if __name__ == "__main__":
    main()
