"""`semray prune`: delete models of a study to free space. Scores stay; a new task would train again."""

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
    """Print which models can go and their size; delete them with --yes."""
    study, ledger = study_of(options), ledger_of(options)
    keep = options.models or study.resources.models
    if keep == "keep":
        raise StudyError(
            f"{study.path}: resources.models = keep: the study keeps all its models\n"
            "  accepted: `--models best` or `--models none`, or one of these under `resources:`"
        )
    runs = models_to_remove(planned(study, ledger), ledger, keep)
    sizes = ledger.model_sizes(runs)
    if options.yes:
        with _full_disk_explained(ledger.url), ledger.drive(study.name):
            ledger.drop_models(runs)
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
def _full_disk_explained(url: str) -> Iterator[None]:
    """StudyError if the disk is too full even to record what is deleted, which comes before each deletion."""
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
