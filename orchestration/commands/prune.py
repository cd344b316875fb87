"""`semray prune`: give back the room that a study's models take. Scores stay; a new task would train again."""

from __future__ import annotations

import errno
import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from orchestration.commands.ls import in_bytes
from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.plan.held import planned
from orchestration.plan.kept_models import models_to_remove
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
    runs = models_to_remove(planned(study, ledger), ledger, keep)
    sizes = {run.id: ledger.model_size(run) for run in runs}
    if options.yes:
        with _full_disk_told(ledger.url), ledger.drive(study.name):
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


@contextmanager
def _full_disk_told(url: str) -> Iterator[None]:
    """Who prunes, and which entry has no model any more, is written before a model goes, which takes room."""
    try:
        yield
    except (OSError, StudyError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StudyError(
            f"ledger {url}: {cause.strerror}: to give room back takes a little first\n"
            "  accepted: the same command once more, after some 100 kB were freed there by other means"
        ) from error
