"""A check for commands that need every run of a launch to finish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.lanes.events import Outcome
    from orchestration.study.run import Run


def require_whole(outcome: Outcome, runs: Iterable[Run]) -> None:
    """Raise KeyboardInterrupt if the launch was stopped, or StudyError that names the first failed run."""
    if outcome.stopped:
        raise KeyboardInterrupt
    if outcome.failed:
        run_id, failure = next(iter(outcome.failed.items()))
        (label,) = (run.label for run in runs if run.id == run_id)
        raise StudyError(f"{label}: {failure.error}\n  accepted: an arm that runs to its end")
