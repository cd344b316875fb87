"""Tasks on rows that a test made up, and their scores as one list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, Task, Tasks, evaluate, named


def given(rows: Any) -> Benchmark[Any]:
    """A benchmark of these rows."""
    return Benchmark(fingerprint=lambda: "made up", load=lambda: rows)


def scores_of(tasks: Tasks, names: Iterable[str], encode: Callable[[Any], Any]) -> list[Score]:
    """The scores of these tasks, all of which read what `encode` takes."""
    asked: list[Task[Any, Any]] = named(tasks, names)
    found = evaluate(asked, {task.reads: encode for task in asked})
    return [score for _, scores in found for score in scores]
