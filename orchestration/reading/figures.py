"""Which figures does a metric of a study stand for? `mean(…)` and `each(…)` are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluators.tasks.figures import FORM, members
from evaluators.tasks.task import Task, Tasks, metric_names
from orchestration.reading.checking import Checker
from orchestration.reading.document import Place
from orchestration.study.names import names_accepted

Groups = Mapping[str, tuple[str, ...]]


def figures_at(
    check: Checker, place: Place, metric: str, tasks: Tasks, groups: Groups, every: Tasks
) -> tuple[str, ...] | None:
    """The figures of these tasks that the metric at a place stands for; None where it is refused.

    every: tasks that the study could be measured on as well, for the message.
    """
    known = metric_names(tasks.values())
    if not FORM.fullmatch(metric):
        task = _with(metric, every)
        hint = f"; {metric} comes with `evaluate: {task.name}`" if task else ""
        return (metric,) if metric in known or check.name(place, known, hint=hint) else None
    try:
        return members(metric, tasks, groups)
    except KeyError as error:
        name = str(error.args[0])
        offered = [*(group for group, of in groups.items() if tasks.keys() >= set(of)), *tasks, *known]
        hint = f"; {name} comes with `evaluate: {name}`" if name in every else ""
        check.refuse(place, names_accepted(name, list(dict.fromkeys(offered))) + hint)
    except ValueError as error:
        check.refuse(place, str(error))
    return None


def _with(metric: str, tasks: Tasks) -> Task[Any, Any] | None:
    return next((task for task in tasks.values() if metric in task.metrics), None)
