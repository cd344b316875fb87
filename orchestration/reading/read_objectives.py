"""What a search optimises: a figure of development data, with a counterpart on test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluators.tasks.figures import FORM, is_each
from evaluators.tasks.task import is_dev, metric_names, named
from orchestration.reading.checking import WRONG, Checker
from orchestration.reading.figures import figures_at
from orchestration.study.blocks import Objective

if TYPE_CHECKING:
    from orchestration.families.contract import Family
    from orchestration.reading.document import Place


def written_objectives(check: Checker, place: Place) -> list[tuple[Place, Objective]]:
    """Those that name a metric, each with its place. Whatever else one says may be wrong."""
    given = check.document.at(place) if check.document.holds(place) else None
    entries = [((*place, index), one) for index, one in enumerate(given)] if isinstance(given, list) else []
    return [
        (where, Objective(metric=one["metric"], mode=one.get("mode", ""), confirm=_text(one.get("confirm"))))
        for where, one in entries or [(place, given)]
        if isinstance(one, dict) and _text(one.get("metric"))
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def check_objectives(
    check: Checker, parts: Mapping[str, Any], family: Family, objectives: Sequence[tuple[Place, Objective]]
) -> None:
    """Is each measured on development data, the right way round, and confirmed by what `evaluate` yields?"""
    table, groups = family.tasks(parts["data"]), family.groups(parts["data"])
    of_dev = {name: task for name, task in table.items() if is_dev(name)}
    asked = () if parts["evaluate"] is WRONG else named(table, parts["evaluate"])
    of_test = {task.name: task for task in asked if not is_dev(task.name)}
    known, tested = metric_names(of_dev.values()), metric_names(of_test.values())
    for place, objective in objectives:
        metric, confirmed = objective.metric, objective.confirmed
        if is_each(metric) or is_each(confirmed):
            check.refuse((*place, "metric"), "one figure, or their mean(…)")
            continue
        chosen = figures_at(check, (*place, "metric"), metric, of_dev, groups, of_dev)
        if chosen:
            parts["figures"][metric] = chosen
            larger = known[chosen[0]]
            if objective.mode in ("max", "min") and objective.mode != ("max" if larger else "min"):
                check.refuse((*place, "mode"), "max: larger is better" if larger else "min: smaller is better")
        if not asked or not (chosen or objective.confirm):
            continue
        here = (*place, "confirm" if objective.confirm else "metric")
        if FORM.fullmatch(confirmed):
            found = figures_at(check, here, confirmed, of_test, groups, {})
            if not found:
                continue
            parts["figures"][confirmed] = found
            confirmed = found[0]
        if confirmed not in tested:
            check.refuse(
                here,
                "one that `evaluate` measures on test data, or with `confirm` set to such: "
                f"{', '.join(tested) or 'it names none'}",
            )
        elif chosen and tested[confirmed] != larger:
            better = "larger" if larger else "smaller"
            check.refuse((*place, "confirm"), f"one that is better when {better}, as {metric} is")
