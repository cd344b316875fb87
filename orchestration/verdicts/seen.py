"""Whether the outcome of a claim can be known: a pair of its arms has scores on its tasks in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evaluators.significance.claims import sides_of
from evaluators.tasks.scores_file import NAME as BY_SCRIPT
from orchestration.verdicts.records import StudyRecords

if TYPE_CHECKING:
    from evaluators.significance.claims import Claim, Declared
    from evaluators.tasks.task import Task
    from orchestration.study.run import Run

UNMATCHED: dict[str, Any] = {"matched_control": None, "signal": None}


def measured_on(records: StudyRecords, judged: Declared) -> list[Task[Any, Any]]:
    """The tasks that yield the figures of a claim."""
    figures = {figure for part in judged.parts for figure in records.study.figures_of(part.metric)}
    return [task for task in records.tasks if not figures.isdisjoint(task.metrics)]


def could_be_seen(records: StudyRecords, claim: Declared) -> bool:
    """Whether a pair of this claim, or of a part of it, has scores, so that its outcome could be known."""
    study = records.study
    judged = [one.resolved(study.figures) for one in claim.each(study.backbones)]
    return any(_has_pair(records, part) for one in judged for part in one.parts)


def _has_pair(records: StudyRecords, part: Claim) -> bool:
    tasks, places = measured_on(records, part), sides_of([replace(part, **UNMATCHED)])
    sides = [_scored(records, place, tasks) for place in places]
    trained = [seeds for seeds in sides if None not in seeds]  # an untrained arm's run pairs with all seeds
    return not trained or bool(set.intersection(*trained))


def _scored(records: StudyRecords, place: tuple[str, str], tasks: Sequence[Task[Any, Any]]) -> set[int | None]:
    """The seeds at which an arm has scores on at least one of the tasks.

    Scores that a script computes itself can be seen as soon as its training is in the ledger.
    """

    def can_be_seen(run: Run, task: Task[Any, Any]) -> bool:
        return (run.id if task.reads == BY_SCRIPT else run.entry(task.name)) in records.there

    runs = records.runs_of.get(place, ())
    return {
        run.seed
        for run in runs
        if run.former in records.there or any(can_be_seen(run, task) for task in tasks if task.name in run.tasks)
    }
