"""Metrics of a study: one figure of a task, the mean of several figures, or each of them.

sts/STS12/spearman           that figure
mean(sts)                    the mean of the headlines of a group's tasks, run by run
mean(t2d, d2t/mrr)           the mean of a task's headline and of a figure
each(sts)                    each of those figures, for claims that must hold on all of them or on some number
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from evaluators.tasks.senteval import SKLEARN, TOOLKIT
from evaluators.tasks.task import Tasks

FORM = re.compile(r"(mean|each)\((.*)\)")


def is_each(metric: str) -> bool:
    return metric.startswith("each(")


def is_mean(metric: str) -> bool:
    return metric.startswith("mean(")


def names_of(metric: str) -> list[str]:
    """The names between the parentheses; the metric itself if there are none."""
    form = FORM.fullmatch(metric)
    return [name.strip() for name in form[2].split(",")] if form else [metric]


def members(metric: str, tasks: Tasks, groups: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The figures that a metric stands for; tasks and groups stand for headlines.

    Raises KeyError for an unknown name, and ValueError, with what is accepted, for figures that form no mean.
    """
    directions = {figure: larger for task in tasks.values() for figure, larger in task.metrics.items()}
    if not FORM.fullmatch(metric):
        return (metric,)
    found: list[str] = []
    for name in names_of(metric):
        if name in directions:
            found.append(name)
        else:
            found += [tasks[task].headline for task in groups.get(name, (name,))]
    if len(found) < 2 or len(set(found)) < len(found):
        raise ValueError("two figures or more, each once")
    if len({directions[figure] for figure in found}) > 1:
        raise ValueError("figures that are all better when larger, or all when smaller")
    if all(any(figure.startswith(prefix) for figure in found) for prefix in (TOOLKIT, SKLEARN)):
        raise ValueError(f"figures of one classifier: {TOOLKIT}… or {SKLEARN}…, which are never mixed")
    return tuple(found)


def mean_of(values_of: Mapping[str, float], figures: tuple[str, ...]) -> float:
    """The mean of these figures of one run; nan if one is missing."""
    values = [values_of.get(figure, math.nan) for figure in figures]
    return values[0] if len(values) == 1 else math.fsum(values) / len(values)
