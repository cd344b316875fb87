"""`semray plan`: print what a run would do and what its seeds can show, as `semray run` does first."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestration.commands.terminal import DONE, fitted, ledger_of, study_of, width_of
from orchestration.commands.waiting import PREPARING, doing
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import check_kept, planned
from orchestration.plan.plan import Plan, checked_backbones
from orchestration.study.names import printable

if TYPE_CHECKING:
    from orchestration.plan.reach import Reach
    from orchestration.study.run import Run


def plan(options: Namespace) -> int:
    """Print what a run would do and what its seeds can show."""
    from orchestration.plan.described import next_step, open_words
    from orchestration.verdicts.growing import grown_and_next

    study, ledger = study_of(options), ledger_of(options)
    with doing(PREPARING):
        plan, wider = grown_and_next(planned(study, ledger), ledger)
        if plan.left:
            checked_backbones(study, plan.facts.precision)
            check_kept(plan, ledger)
    if options.json:
        reaches, _ = _reaches(plan, ledger)
        print(
            json.dumps(
                {
                    "study": study.name,
                    "runs": runs_as_json(plan, plan.runs),
                    "next_seed": next_seed(plan, wider),
                    "rows": [asdict(one) for one in family(study.family).rows(study.data) or ()],
                    "claims": [asdict(reach) for reach in reaches],
                },
                indent=1,
            )
        )
    else:
        lines = (
            words_of(plan, ledger, options.price),
            open_words(plan, wider),
            next_step(plan, wider, ledger.url),
        )
        print(fitted(printable("\n".join(filter(None, lines)), keep="\n"), width_of(sys.stdout)))
    return DONE


def runs_as_json(plan: Plan, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Runs of a plan, or of a wider one, as plain JSON types."""
    done = {run.id for run in plan.done}
    return [
        {"id": run.id, "arm": run.arm, "backbone": run.backbone, "seed": run.seed, "done": run.id in done}
        for run in runs
    ]


def next_seed(plan: Plan, wider: Plan | None) -> list[dict[str, Any]]:
    """The runs by which `semray run` would widen the plan, as claims are still open when all others are done."""
    return runs_as_json(plan, wider.runs[len(plan.runs) :]) if wider else []


def words_of(plan: Plan, ledger: Ledger, price: float | None = None) -> str:
    """The plan in words, with expected time and cost, claims and warnings."""
    from orchestration.lanes.cluster import RunShare, free_memory, named_address, runs_that_fit_here
    from orchestration.plan.bill import cost_words
    from orchestration.plan.described import describe, estimate, foretold_words
    from orchestration.plan.held import with_times
    from orchestration.plan.other_runs import foretell
    from orchestration.plan.slips import slips_of_processor

    if plan.left or price:
        plan = with_times(plan, ledger)
    resources = plan.study.resources
    on_this_processor = not (resources.gpus_per_run or named_address())
    workers = resources.workers_per_run
    share = RunShare(cpus=workers, memory=resources.memory_per_worker * workers)
    here = runs_that_fit_here(share) if on_this_processor else None
    lanes = min(resources.lanes or here or 1, len(plan.jobs) or 1)
    reaches, notes = _reaches(plan, ledger)
    expected = estimate(plan)
    untimed = any(run.seed is not None for run in plan.left) and expected is None
    foretold = foretell(plan, ledger) if untimed else None
    time = foretold_words(foretold, lanes) if untimed else ""
    left = expected or foretold
    costs = cost_words(plan, price, left.seconds if left else None)
    notes += slips_of_processor(plan.left) if on_this_processor else []
    if plan.left and on_this_processor and share.memory > free_memory():
        notes.append(
            f"resources.memory_gib_per_run = {resources.memory_gib_per_run:g}: more than is free here now"
        )
    return describe(
        plan,
        reaches=reaches,
        failed=ledger.failed(plan.left),
        lanes=lanes,
        notes=notes,
        time=time,
        costs=costs,
        rows=rows_words(plan),
    )


def _reaches(plan: Plan, ledger: Ledger) -> tuple[tuple[Reach, ...], list[str]]:
    """What the claims can reach, and notes on those that are exploratory or that the study no longer makes."""
    from orchestration.plan.reach import reachability
    from orchestration.verdicts import declared as claims
    from orchestration.verdicts.pairing import seen
    from orchestration.verdicts.records import StudyRecords

    records = StudyRecords(plan.study, plan.runs, ledger, plan.finished)
    declaration = claims.declaration_of(records)
    changed = claims.withdrawn(records, declaration)
    if declaration and any(one.still for one in changed):
        declaration = claims.amended(declaration, records)
        changed = claims.withdrawn(records, declaration)
    late = claims.late(records, declaration)
    reaches = reachability(
        plan, seen(records), claims.nulls_by_group(changed), {(one.claim, one.backbone) for one in late}
    )
    return reaches, [*(one.words for one in changed), *claims.never_declared(records, declaration, late)]


def rows_words(plan: Plan) -> list[str]:
    """Lines on how many rows of each data set the runs train on, if that is known before the data are built."""
    if all(run.seed is None for run in plan.left):
        return []
    found = family(plan.study.family).rows(plan.study.data)
    return ["counted by the first run, which builds them"] if found is None else [one.words for one in found]
