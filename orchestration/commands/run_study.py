"""`semray run`, top to bottom: plan, declare, train, judge, add seeds while a claim is open, report."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.commands.publish import publish, report_folder
from orchestration.commands.show import described, show
from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, say, study_of
from orchestration.commands.waiting import JUDGING, PREPARING, doing
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.kept_models import not_kept
from orchestration.plan.plan import Plan, prepare
from orchestration.study.study import Study
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find, still_open
from orchestration.verdicts.growing import with_another_seed
from orchestration.verdicts.published import with_published

if TYPE_CHECKING:
    from orchestration.lanes.events import Event
    from orchestration.verdicts.findings import Findings


def run(options: Namespace) -> int:
    """Train what the ledger lacks, judge, report, track."""
    study, ledger = study_of(options), ledger_of(options)
    if study.search is not None:
        say(f"the study's arms as they are; its search:  semray search {study.path}")
    findings, whole = run_study(study, ledger)
    findings = with_published(findings, study)
    show(options, findings)
    publish(findings, ledger, report_folder(options, study, ledger), options.mlflow)
    say(*next_steps(options.study, findings, whole))
    return DONE if whole else SOME_FAILED


def next_steps(study: str, findings: Findings, whole: bool) -> list[str]:
    """What a person may type after a run: how it goes on where it is not done, else where to look closer."""
    if not whole:
        return [f"next    semray run {study}   goes on from here: what is finished is kept"]
    claims = [finding.verdict.claim for finding in findings.findings]
    looks = [f"semray why {study} {claims[0]}   what a verdict rests on"] if claims else []
    looks.append(f"semray ui {study}   every run in MLflow, on this machine alone")
    return [f"next    {looks[0]}", *(f"        {look}" for look in looks[1:])]


def run_study(study: Study, ledger: Ledger) -> tuple[Findings, bool]:
    """What came of a study after all that the ledger lacked is done; False where some of it is not."""
    with ledger.drive(study.name) as adopted:
        if adopted:
            say(f"taken over from an earlier driver: {len(adopted)} finished runs")
        with doing(PREPARING):
            plan = planned(study, ledger)
        say(described(plan, ledger))
        if plan.left:
            with doing(PREPARING):
                prepare(study)  # a mistake that only a close look finds is found before a lane starts
        declaration = declare(study, plan.runs, ledger)  # and a claim is written down before it can be seen
        say(f"declared  {declaration.digest}   {declaration.declared_at}: publish it for `verify --declared`")
        given_up: set[str] = set()
        while True:
            stopped = _train(plan, ledger, given_up)
            with doing(JUDGING):
                findings = find(study, plan.runs, ledger)
            wider = None if stopped else with_another_seed(plan, findings)
            if wider is None:
                break
            plan = wider
            claims = ", ".join(one.verdict.claim for one in still_open(findings))
            say(f"still open: {claims}; seed {plan.runs[-1].seed} for their arms")
        if not stopped and study.resources.models == "best":
            for run in not_kept(replace(plan, finished=ledger.held(plan.runs)), ledger, "best"):
                ledger.drop_model(run)
    return findings, not (stopped or findings.with_status("failed") or findings.with_status("missing"))


def _train(plan: Plan, ledger: Ledger, given_up: set[str]) -> bool:
    """Launch what the ledger lacks, except for runs given up before; True when asked to stop before the end."""
    from orchestration.lanes.cluster import cores
    from orchestration.lanes.events import RunFinished
    from orchestration.lanes.launch import launch
    from orchestration.lanes.progress import Watch

    lost = {entry for run in plan.runs if run.id in given_up for entry in run.entries}
    left = replace(plan, finished=ledger.held(plan.runs) | lost)
    if not left.jobs:
        return False
    watch = Watch(len(left.left), backbones=len(plan.study.backbones))

    def hear(event: Event) -> None:
        watch(event)
        if isinstance(event, RunFinished) and event.seconds and plan.study.resources.models == "none":
            ledger.drop_model(event.run)

    stacked = family(plan.study.family).stacked  # one model for many runs: it takes the whole machine
    try:
        outcome = launch(
            left.jobs,
            ledger=ledger,
            resources=plan.study.resources,
            on_event=hear,
            threads_per_lane=max(1, cores() // len(left.jobs)) if stacked else 1,
        )
    finally:
        watch.close()
    given_up |= outcome.failed.keys()
    return outcome.stopped
