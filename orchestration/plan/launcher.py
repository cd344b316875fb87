"""Which launcher executes a job. Plans and launches both use this rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from orchestration.study.blocks import Resources
    from orchestration.study.run import Job

Launcher = Literal["pool", "train"]


def launcher(job: Job, resources: Resources) -> Launcher:
    """The launcher of a job: the study's choice, else a pooled lane for one worker, a Ray Train group for several.

    Runs of one study may differ: an untrained run always has one worker.
    """
    if resources.launcher != "auto":
        return resources.launcher
    return "train" if any(run.world_size > 1 for run in job.runs) else "pool"
