"""What a script has scored itself: its file of scores, read by what the study declares of every metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corpora.command.scores import MetricRows, read_scores
from corpora.store.errors import CorpusError
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.ranges import range_of
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, Task, Tasks, is_dev

NAME = "scores"
PREFIX = f"{NAME}/"
AVERAGED = {"higher": True, "lower": False}  # every other reading is an aggregate against gold, and more is better


def tasks(metrics: Mapping[str, str], prefix: str = PREFIX) -> Tasks:
    """The single task with these metrics. metrics: name in the file -> how its rows become a figure.

    prefix: of their names in a study.
    """
    return {NAME: _task(NAME, metrics, {metric: f"{prefix}{metric}" for metric in metrics})}


def tasks_of_script(metrics: Mapping[str, str]) -> Tasks:
    """The task of a script's metrics, and a second task of its dev metrics, by which a search may choose:
    `dev/accuracy` of the file is `dev/scores/accuracy` of the task `dev/scores`."""
    of_dev = {metric: reading for metric, reading in metrics.items() if is_dev(metric)}
    made = tasks({metric: reading for metric, reading in metrics.items() if metric not in of_dev})
    names = {metric: f"dev/{PREFIX}{metric.removeprefix('dev/')}" for metric in of_dev}
    return {**made, f"dev/{NAME}": _task(f"dev/{NAME}", of_dev, names)} if of_dev else made


def _task(name: str, metrics: Mapping[str, str], names: Mapping[str, str]) -> Task[Any, Any]:
    larger = {names[metric]: AVERAGED.get(reading, True) for metric, reading in metrics.items()}
    declared = sorted(metrics.items())
    return Task(
        name=name,
        metrics=larger,
        headline=next(iter(larger), ""),
        benchmark=Benchmark(
            fingerprint=lambda: repr(declared),
            load=lambda: metrics,
            fingerprint_of=lambda asked: repr([(one, how) for one, how in declared if names[one] in asked]),
        ),
        texts=tuple,
        score=partial(_score, names),
        source="what the script wrote",
        reads="scores",
    )


def _score(
    names: Mapping[str, str],
    metrics: Mapping[str, str],
    place_of: Callable[[Sequence[str]], Sequence[Path]],
) -> list[Score]:
    """Every declared metric, by its name in the study. Raises CorpusError as `figures`."""
    if not metrics:
        return []
    path = place_of([next(iter(metrics))])[0]
    return figures(path, metrics, read_scores(path), names)


def figures(
    path: Path, metrics: Mapping[str, str], found: Mapping[str, MetricRows], names: Mapping[str, str]
) -> list[Score]:
    """These metrics of a file's rows. Raises CorpusError if the file lacks or contradicts a declared metric."""
    lacking = [metric for metric in metrics if metric not in found]
    if lacking:
        raise CorpusError(
            f"{path}: has no rows of {', '.join(lacking)}, which data.metrics or --read declares"
            f"\n  accepted: what it holds: {', '.join(found)}"
        )
    return [
        _figure(partial(_wrong, path, metric), names[metric], how, found[metric])
        for metric, how in metrics.items()
    ]


def _figure(wrong: Callable[[str, str], CorpusError], name: str, reading: str, rows: MetricRows) -> Score:
    larger, declared = AVERAGED.get(reading, True), f"data.metrics or --read declares it as {reading}"
    if rows.larger_is_better - {larger}:
        raise wrong(f"larger_is_better = {not larger}", f"{larger}: {declared}")
    limits = range_of(name)
    if limits and (outside := outside_range(name, reading, rows)):
        raise wrong(f"score = {outside[0]:g}", f"from {limits[0]:g} to {limits[1]:g}, where its name says it lies")
    plain = reading in AVERAGED
    if not rows.items:
        if not plain:
            raise wrong("one row without an item", f"items with gold: {declared}")
        return Score(metric=name, value=rows.scores[0], larger_is_better=larger)
    if not plain and not rows.gold:
        raise wrong("no gold", f"a column `gold`: {declared}")
    kind: Any = "mean" if plain else reading
    gold = None if plain else np.array(rows.gold)
    try:
        scores = np.array(rows.scores)
        return score_of_items(name, kind, rows.items, rows.groups, scores, gold, larger_is_better=larger)
    except ValueError as error:
        raise wrong(str(error), f"what {reading} is made of") from None


def outside_range(name: str, reading: str, rows: MetricRows) -> list[float]:
    """The scores outside the range that the metric's name implies; [] for metrics against gold."""
    limits = range_of(name)
    if limits is None or reading not in AVERAGED:
        return []
    return [score for score in rows.scores if not limits[0] <= score <= limits[1]]


def _wrong(path: Path, metric: str, problem: str, accepted: str) -> CorpusError:
    return CorpusError(f"{path}: {metric}: {problem}\n  accepted: {accepted}")
