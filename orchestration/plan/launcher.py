"""Which launcher a job needs: a plan foretells by this rule, and a launch follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from orchestration.study.blocks import Resources
    from orchestration.study.run import Job

Launcher = Literal["pool", "train"]


def launcher(job: Job, resources: Resources) -> Launcher:
    """A pooled lane for one worker, a Ray Train group for several, unless the study says which.

    Runs of one study differ in this: an untrained one has a single worker whatever the trained ones have.
    """
    if resources.launcher != "auto":
        return resources.launcher
    return "train" if any(run.world_size > 1 for run in job.runs) else "pool"
