"""`semray prune`: give back the room that a study's models take. Scores stay; a new task would train again."""

from __future__ import annotations

import json
from argparse import Namespace

from orchestration.commands.ls import in_bytes
from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.plan.held import planned
from orchestration.plan.kept_models import not_kept
from orchestration.study.errors import StudyError


def prune(options: Namespace) -> int:
    """Say which models go, and how much room that gives; delete them when told to."""
    study, ledger = study_of(options), ledger_of(options)
    keep = options.models or study.resources.models
    if keep == "keep":
        raise StudyError(
            f"{study.path}: resources.models = keep: the study keeps all its models\n"
            "  accepted: `--models best` or `--models none`, or one of these under `resources:`"
        )
    runs = not_kept(planned(study, ledger), ledger, keep)
    sizes = {run.id: ledger.model_size(run) for run in runs}
    if options.yes:
        with ledger.drive(study.name):
            for run in runs:
                ledger.drop_model(run)
    if options.json:
        print(json.dumps({"models": sizes, "bytes": sum(sizes.values()), "deleted": options.yes}))
        return DONE
    for run in runs:
        print(f"{run.id}   {run.label}   {in_bytes(sizes[run.id])}")
    done = "deleted" if options.yes else "to delete; nothing is without --yes"
    print(f"{len(runs)} models, {in_bytes(sum(sizes.values()))}: {done}")
    if runs:
        print("their scores stay valid; a new task for these runs would train them again")
    return DONE
