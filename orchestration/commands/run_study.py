"""`semray run`: train what the ledger lacks, judge, add seeds while a claim is open, report."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.commands.look import described, show
from orchestration.commands.publish import publish, report_folder
from orchestration.commands.terminal import DONE, SOME_FAILED, say, study_of
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import Plan, prepare
from orchestration.study.study import Study
from orchestration.verdicts.growing import with_another_seed

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Findings


def run(options: Namespace) -> int:
    """Train what the ledger lacks, judge, report, track."""
    study = study_of(options)
    if study.search is not None:
        say(f"the study's arms as they are; its search:  semray search {study.path}")
    ledger = Ledger(options.ledger)
    findings, code = carry_out(study, ledger)
    show(options, findings)
    publish(findings, ledger, report_folder(options, study, ledger), options.mlflow)
    return code


def carry_out(study: Study, ledger: Ledger) -> tuple[Findings, int]:
    """Train what the ledger lacks of a study, and judge; returns the findings and the exit code."""
    from orchestration.verdicts.find import declare, find

    with ledger.drive(study.name) as adopted:
        if adopted:
            say(f"taken over from an earlier driver: {len(adopted)} finished runs")
        plan = planned(study, ledger)
        say(described(plan, ledger))
        if plan.left:
            prepare(study)
        declare(study, plan.runs, ledger)
        given_up: set[str] = set()
        stopped = _train(plan, ledger, given_up)
        findings = find(study, plan.runs, ledger)
        while not stopped and (wider := with_another_seed(plan, findings)) is not None:
            plan = wider
            say(f"still open: {_open_claims(findings)}; seed {plan.runs[-1].seed} for their arms")
            stopped = _train(plan, ledger, given_up)
            findings = find(study, plan.runs, ledger)
    unfinished = stopped or findings.with_status("failed") or findings.with_status("missing")
    return findings, SOME_FAILED if unfinished else DONE


def _train(plan: Plan, ledger: Ledger, given_up: set[str]) -> bool:
    """Launch what the ledger lacks, except for runs given up before; True when asked to stop before the end."""
    lost = {entry for run in plan.runs if run.id in given_up for entry in run.entries}
    left = replace(plan, finished=ledger.entries() | lost)
    if not left.jobs:
        return False
    from orchestration.families.registry import family
    from orchestration.lanes.cluster import cores
    from orchestration.lanes.launch import launch
    from orchestration.lanes.progress import Watch

    watch = Watch(len(left.left))
    threads = max(1, cores() // len(left.jobs)) if family(plan.study.family).stacked else 1
    try:
        outcome = launch(
            left.jobs,
            ledger=ledger,
            resources=plan.study.resources,
            on_event=watch,
            threads_per_lane=threads,
        )
    finally:
        watch.close()
    given_up |= outcome.failed.keys()
    return outcome.stopped


def _open_claims(findings: Findings) -> str:
    return ", ".join(f.verdict.claim for f in findings.findings if f.verdict.verdict == "undecided")
