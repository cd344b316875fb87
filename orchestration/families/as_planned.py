"""Checks in a lane that backbone, corpus and tasks are the planned ones, as its machine may have other files.

A result is filed under the id of the planned run, which would be wrong for other files.
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
    """Raise StudyError unless the backbone in `folder` is that of the run's id."""
    from trainers.encoders.backbones import backbone_fingerprint

    _check(run, f"backbone {run.backbone}, here {folder}", run.backbone_fingerprint, backbone_fingerprint(folder))


def check_corpus(run: Run, fingerprint: str) -> None:
    """Raise StudyError unless this is the corpus fingerprint of the run's id."""
    _check(run, f"corpus of the {run.family} family", run.corpus_fingerprint, fingerprint)


def check_tasks(run: Run, tasks: Sequence[Task[Any, Any]]) -> None:
    """Raise StudyError unless the fingerprints of these tasks are those of the run."""
    for task in tasks:
        _check(run, f"rows of the task {task.name}", run.tasks[task.name], task.fingerprint)


def _check(run: Run, name: str, expected: str, found: str) -> None:
    if expected != found:
        raise StudyError(
            f"{run.label}: {name}, is not the one the run was planned with\n"
            f"  expected {expected}\n  found    {found}"
        )
