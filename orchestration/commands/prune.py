"""`semray prune`: delete models of a study to free space. Scores stay; a new task would train again."""

from __future__ import annotations

import errno
import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations

from evaluators.significance.components import LEVELS, crossed
from orchestration.commands.ls import in_bytes
from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.plan.crossed import alone_changed, level_seeds, runs_of_design
from orchestration.plan.held import planned
from orchestration.plan.kept_models import models_to_remove
from orchestration.plan.plan import Plan, by_arm
from orchestration.study.errors import StudyError
from orchestration.study.run import Run
from orchestration.verdicts.growing import grown


def prune(options: Namespace) -> int:
    """Print which models can go and their size; delete them with --yes."""
    study, ledger = study_of(options), ledger_of(options)
    keep = options.models or study.resources.models
    if keep == "keep":
        raise StudyError(
            f"{study.path}: resources.models = keep: the study keeps all its models\n"
            "  accepted: `--models best` or `--models none`, or one of these under `resources:`"
        )
    plan = grown(planned(study, ledger), ledger)
    runs = (*models_to_remove(plan, ledger, keep), *_beside(plan, ledger))
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


def _beside(plan: Plan, ledger: Ledger) -> list[Run]:
    """The finished runs with models that are of the study's arms and of none of its seeds: those of which `semray
    noise` crossed the streams, and seeds trained ahead that no claim came to need."""
    study, planned_ids, there = plan.study, {run.id for run in plan.runs}, ledger.ids()
    firsts = [runs[0] for runs in by_arm(plan.runs).values() if runs[0].seed is not None]
    ahead = [replace(run, seed=seed, former="") for run in firsts for seed in study.seeds.reserve]
    streams = family(study.family).streams
    crossed_runs = (one for run in firsts for one in _crossed(run, streams, study.seeds.initial))
    noise = [run for run in crossed_runs if run.streams]  # one of a plain seed may be another study's
    found = {run.id: run for run in (*ahead, *noise) if run.id in there and run.id not in planned_ids}
    held = ledger.held(found.values())
    finished = [run for run in found.values() if not run.lacking(held)]
    sizes = ledger.model_sizes(finished)
    return [run for run in finished if sizes[run.id]]


def _crossed(run: Run, streams: Sequence[str], known: Sequence[int]) -> Iterator[Run]:
    """Every run that `semray noise` may have asked for, of any number of levels and whichever streams draw."""
    for levels in LEVELS if streams else ():
        seeds = level_seeds(known, levels)
        yield from alone_changed(run, streams, seeds[0], seeds[1]).values()
        for count in range(2, min(len(streams), levels) + 1):
            design = crossed(count, levels)
            for live in combinations(streams, count):
                yield from runs_of_design(run, live, seeds, design)


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
