"""What a metric stands for: one figure of a task, the mean of figures over tasks, or each of them.

sts/STS12/spearman           that figure
mean(sts)                    the mean of the headlines of a group's tasks, run by run
mean(t2d, d2t/mrr)           the mean of a task's headline and of a figure
each(sts)                    each of those figures: claims that must hold on each, or on so many
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
    """What stands between the parentheses; the metric alone where there are none."""
    form = FORM.fullmatch(metric)
    return [name.strip() for name in form[2].split(",")] if form else [metric]


def members(metric: str, tasks: Tasks, groups: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The figures that a metric stands for, those of a task or a group by their headlines.

    KeyError for a name that is neither; ValueError, saying what would be accepted, for names that make no mean.
    """
    directions = {figure: larger for task in tasks.values() for figure, larger in task.metrics.items()}
    if not FORM.fullmatch(metric):
        return (metric,)
    found: list[str] = []
    for name in names_of(metric):
        if name in directions:
            found.append(name)
        else:
            found += [tasks[one].headline for one in groups.get(name, (name,))]
    if len(found) < 2 or len(set(found)) < len(found):
        raise ValueError("two figures or more, each once")
    if len({directions[one] for one in found}) > 1:
        raise ValueError("figures that are all better when larger, or all when smaller")
    if all(any(one.startswith(prefix) for one in found) for prefix in (TOOLKIT, SKLEARN)):
        raise ValueError(f"figures of one classifier: {TOOLKIT}… or {SKLEARN}…, which are never mixed")
    return tuple(found)


def mean_of(found: Mapping[str, float], figures: tuple[str, ...]) -> float:
    """The mean of these figures of one run; nan where one is not there."""
    values = [found.get(one, math.nan) for one in figures]
    return values[0] if len(values) == 1 else math.fsum(values) / len(values)
