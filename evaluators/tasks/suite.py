"""The tasks of the field, for every encoder of texts: similarity, classification and robustness.

table = tasks("data")                 # every task by name
GROUPS["sts"]                         # the seven STS tasks that papers average; "senteval" likewise
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.tasks import robustness, senteval, sts
from evaluators.tasks.task import Tasks

# What stands for several tasks in `evaluate:` and in a mean over tasks.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "sts": sts.SEVEN,
    "sts-dedup": sts.SEVEN_DEDUP,
    "senteval": senteval.SEVEN,
    "senteval-sklearn": senteval.SEVEN_SKLEARN,
}


def tasks(path: str | None) -> Tasks:
    """Every task by name; path: a folder to look in before $SEMRAY_DATA. Nothing is read until a task is asked."""
    return {**sts.tasks(path), **senteval.tasks(path), **robustness.tasks(path)}
