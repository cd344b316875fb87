"""Backbone and corpus as a lane finds them: it may run where a name stands for other files.

A result is filed under what was planned; made of anything else it would be filed under a wrong name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from evaluators.tasks.task import Task
    from orchestration.study.run import Run


def check_backbone(run: Run, folder: Path) -> None:
    """StudyError unless the backbone in `folder` is that of the run's id."""
    from trainers.encoders.backbones import backbone_fingerprint

    _check(run, f"backbone {run.backbone}, here {folder}", run.backbone_fingerprint, backbone_fingerprint(folder))


def check_corpus(run: Run, fingerprint: str) -> None:
    """StudyError unless the corpus of this fingerprint is that of the run's id."""
    _check(run, f"corpus of the {run.family} family", run.corpus_fingerprint, fingerprint)


def check_tasks(run: Run, tasks: Sequence[Task[Any, Any]]) -> None:
    """StudyError unless these tasks are measured on the rows that the run's scores are to be filed under."""
    for task in tasks:
        _check(run, f"rows of the task {task.name}", run.tasks[task.name], task.fingerprint)


def _check(run: Run, name: str, expected: str, found: str) -> None:
    if expected != found:
        raise StudyError(
            f"{run.label}: {name}, is not the one the run was planned with\n"
            f"  expected {expected}\n  found    {found}"
        )
