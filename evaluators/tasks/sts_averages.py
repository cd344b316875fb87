"""Means over STS sets as separate tasks, which papers print in the last column.

table = averages(path)          # {"sts/avg": Task, "sts/avg_dedup": Task, ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from corpora.benchmarks.sts import Subsets
from evaluators.metrics.scores import Score
from evaluators.tasks import sts
from evaluators.tasks.task import Benchmark, EncodeTexts, Task

AverageTask = Task[Mapping[str, Subsets], str]
# Papers average all sets; "avg5" covers the five sets whose texts may be redistributed.
FIVE = ("STS12", "STS13", "STS14", "STS-B", "SICK-R")
AVERAGES = {"sts/avg": sts.SETS, "sts/avg_dedup": sts.SETS, "sts/avg5": FIVE, "sts/avg5_dedup": FIVE}


def averages(path: str | None) -> dict[str, AverageTask]:
    """Every mean by name; path: a folder to look in first."""
    return {name: _average(name, sets, path) for name, sets in AVERAGES.items()}


def _average(name: str, sets: Sequence[str], path: str | None) -> AverageTask:
    dedup = name.endswith("_dedup")
    table = sts.tasks(path)
    members = [table[f"sts/{published}/dedup" if dedup else f"sts/{published}"] for published in sets]

    def texts(found: Mapping[str, Subsets]) -> Iterator[str]:
        for member in members:
            yield from member.texts(found[member.name])

    def score(found: Mapping[str, Subsets], encode: EncodeTexts) -> list[Score]:
        figures = [
            result.value
            for member in members
            for result in member.score(found[member.name], encode)
            if result.metric == member.headline
        ]
        return [Score(metric=name, value=float(np.mean(figures)))]

    return Task(
        name=name,
        metrics={name: True},
        headline=name,
        benchmark=Benchmark(
            fingerprint=lambda: json.dumps([member.fingerprint for member in members]),
            load=lambda: {member.name: member.benchmark.load() for member in members},
        ),
        texts=texts,
        score=score,
        source="the plain mean over sets of Spearman in the all setting, as SAN and DefSent print it",
    )
