"""Finds the figures that a metric of a study stands for: one, or the several of `mean(…)` and `each(…)`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from evaluators.tasks.figures import FORM, members
from evaluators.tasks.task import Table, Task, Tasks, metric_names
from orchestration.reading.checking import Checker
from orchestration.reading.document import Place
from orchestration.study.names import names_accepted

Groups = Mapping[str, tuple[str, ...]]


def figures_at(
    check: Checker, place: Place, metric: str, tasks: Tasks, groups: Groups, available: Tasks
) -> tuple[str, ...] | None:
    """The figures of `tasks` that the metric at a place stands for; None, with a mistake recorded, if it is none.

    available: all tasks of the family; a message names the one that `evaluate` lacks.
    """
    known = metric_names(tasks.values())
    if not FORM.fullmatch(metric):
        task = _task_with(metric, available)
        hint = f"; {metric} comes with `evaluate: {task.name}`" if task else _how_to_get(metric, available)
        return (metric,) if metric in known or check.name(place, known, hint=hint) else None
    try:
        return members(metric, tasks, groups)
    except KeyError as error:
        name = str(error.args[0])
        offered = [*(group for group, members_ in groups.items() if tasks.keys() >= set(members_)), *tasks, *known]
        hint = f"; {name} comes with `evaluate: {name}`" if name in available else _how_to_get(name, available)
        check.refuse(place, names_accepted(name, list(dict.fromkeys(offered))) + hint)
    except ValueError as error:
        check.refuse(place, str(error))
    return None


def _task_with(metric: str, tasks: Tasks) -> Task[Any, Any] | None:
    return next((task for task in tasks.values() if metric in task.metrics), None)


def _how_to_get(name: str, available: Tasks) -> str:
    """How a study gets the task that this names, or whose figure it names; "" where `evaluate` alone decides."""
    if not isinstance(available, Table):
        return ""
    beginnings = accumulate(name.split("/"), "{}/{}".format)
    task = next(filter(available.looks_up, beginnings), None)
    why = available.why_not(task) if task else ""
    return f"; {why}" if why else ""
