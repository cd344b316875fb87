"""What a search optimises: a figure of development data, with a counterpart on test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluators.tasks.figures import FORM, is_each
from evaluators.tasks.task import Table, is_dev, metric_names, named
from orchestration.reading.checking import WRONG, Checker
from orchestration.reading.figures import figures_at
from orchestration.study.blocks import Objective

if TYPE_CHECKING:
    from orchestration.families.contract import Family
    from orchestration.reading.document import Place


def written_objectives(check: Checker, place: Place) -> list[tuple[Place, Objective]]:
    """The objectives that name a metric, each with its place. Their other fields are not checked yet."""
    given = check.document.at(place) if check.document.holds(place) else None
    entries = [((*place, index), entry) for index, entry in enumerate(given)] if isinstance(given, list) else []
    return [
        (where, Objective(metric=entry["metric"], mode=entry.get("mode", ""), confirm=_text(entry.get("confirm"))))
        for where, entry in entries or [(place, given)]
        if isinstance(entry, dict) and _text(entry.get("metric"))
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def check_objectives(
    check: Checker, parts: Mapping[str, Any], family: Family, objectives: Sequence[tuple[Place, Objective]]
) -> None:
    """Refuse objectives that no dev task yields, whose mode is wrong, or that `evaluate` cannot confirm."""
    table, groups = family.tasks(parts["data"]), family.groups(parts["data"])
    dev_tasks = {name: task for name, task in table.items() if is_dev(name)}
    finds = table.finds if isinstance(table, Table) else {}
    available = Table(dev_tasks, {prefix: find for prefix, find in finds.items() if is_dev(prefix)})
    evaluated = () if parts["evaluate"] is WRONG else named(table, parts["evaluate"])
    test_tasks = {task.name: task for task in evaluated if not is_dev(task.name)}
    dev_metrics, test_metrics = metric_names(dev_tasks.values()), metric_names(test_tasks.values())
    for place, objective in objectives:
        metric, confirmed = objective.metric, objective.confirmed
        if is_each(metric) or is_each(confirmed):
            check.refuse((*place, "metric"), "one figure, or their mean(…)")
            continue
        dev_figures = figures_at(check, (*place, "metric"), metric, dev_tasks, groups, available)
        if dev_figures:
            parts["figures"][metric] = dev_figures
            larger_is_better = dev_metrics[dev_figures[0]]
            if objective.mode in ("max", "min") and objective.mode != ("max" if larger_is_better else "min"):
                check.refuse(
                    (*place, "mode"), "max: larger is better" if larger_is_better else "min: smaller is better"
                )
        if not evaluated or not (dev_figures or objective.confirm):
            continue
        confirm_place = (*place, "confirm" if objective.confirm else "metric")
        if FORM.fullmatch(confirmed):
            test_figures = figures_at(check, confirm_place, confirmed, test_tasks, groups, {})
            if not test_figures:
                continue
            parts["figures"][confirmed] = test_figures
            confirmed = test_figures[0]
        if confirmed not in test_metrics:
            check.refuse(
                confirm_place,
                "one that `evaluate` measures on test data, or with `confirm` set to such: "
                f"{', '.join(test_metrics) or 'it names none'}",
            )
        elif dev_figures and test_metrics[confirmed] != larger_is_better:
            better = "larger" if larger_is_better else "smaller"
            check.refuse((*place, "confirm"), f"one that is better when {better}, as {metric} is")
