"""`semray run`: plan, declare, train, judge, add seeds while a claim is open, report."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.commands.plan_words import words_of
from orchestration.commands.publish import publish, report_folder
from orchestration.commands.show import show
from orchestration.commands.standing import with_beside
from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, say, study_of
from orchestration.commands.waiting import JUDGING, PREPARING, TIDYING, doing
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.place import at
from orchestration.plan.held import check_kept, planned
from orchestration.plan.kept_models import models_to_remove
from orchestration.plan.plan import Plan, prepare
from orchestration.study.names import typed
from orchestration.study.study import Study
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find, still_open
from orchestration.verdicts.growing import grown_and_next, with_another_seed, with_seeds_ahead
from orchestration.verdicts.published import with_published

if TYPE_CHECKING:
    from orchestration.study.run import Run
    from orchestration.verdicts.findings import Findings


def run(options: Namespace) -> int:
    """Train what the ledger lacks, judge, report, track."""
    study, ledger = study_of(options), ledger_of(options)
    if study.search is not None:
        say(f"the study's arms as they are; its search:  {typed('search', study.path, *at(ledger.url))}")
    findings, whole = run_study(study, ledger)
    findings = with_beside(findings, study, ledger)
    show(options, with_published(findings, study))
    publish(findings, study, ledger, report_folder(options, study, ledger), options.mlflow)
    say(*next_steps(options.study, findings, whole, options.mlflow))
    return DONE if whole else SOME_FAILED


def next_steps(study: str, findings: Findings, whole: bool, mlflow: str | None = None) -> list[str]:
    """The commands to type after a run: `run` again if it is not complete, else those that show more."""
    from orchestration.tracking.reaching import at_mlflow

    place, tracked = at(findings.ledger), at_mlflow(mlflow)
    if not whole:
        return [f"next    {typed('run', study, *place, *tracked)}   goes on from here: what is finished is kept"]
    claims = [finding.verdict.claim for finding in findings.findings]
    looks = [f"{typed('why', study, claims[0], *place)}   what a verdict rests on"] if claims else []
    looks.append(f"{typed('ui', study, *place, *tracked)}   every run in MLflow, on this machine alone")
    return [f"next    {looks[0]}", *(f"        {look}" for look in looks[1:])]


def run_study(study: Study, ledger: Ledger) -> tuple[Findings, bool]:
    """Train and score what the ledger lacks, judge, and add a seed while a claim is open.

    Returns the findings, and whether every run is finished: some may have failed, or a person may have stopped.
    """
    with ledger.drive(study.name) as adopted:
        if adopted:
            say(f"taken over from an earlier driver: {len(adopted)} finished runs")
        with doing(PREPARING):
            plan = planned(study, ledger)
            ledger.forget_finished(plan.done)
            reached, wider = grown_and_next(plan, ledger)
        say(words_of(reached, ledger))
        if reached.left or wider:
            with doing(PREPARING):
                check_kept(reached, ledger)
                prepare(study, reached.facts.precision)  # finds the last mistakes before a lane starts
        declaration = declare(study, plan.runs, ledger)  # before any outcome can be seen
        say(f"declared  {declaration.digest}   {declaration.declared_at}: publish it for `verify --declared`")
        with closing(_Training(study, ledger, stacks=len(plan.jobs))) as training:
            while True:
                stopped = training.launch(plan)
                with doing(JUDGING):
                    findings = find(study, plan.runs, ledger)
                wider = None if stopped else with_another_seed(plan, findings)
                if wider is None:
                    break
                plan = wider
                claims = ", ".join(one.verdict.claim for one in still_open(findings))
                say(f"still open: {claims}; seed {plan.runs[-1].seed} for their arms")
        if not stopped and study.resources.models == "best":
            with doing(TIDYING):
                finished = replace(plan, finished=ledger.held(plan.runs))
                ledger.drop_models((*models_to_remove(finished, ledger, "best"), *training.unneeded(plan)))
    return findings, not (stopped or findings.with_status("failed") or findings.with_status("missing"))


class _Training:
    """The lanes of a study from its first run to its last added seed, and their progress on the terminal."""

    def __init__(self, study: Study, ledger: Ledger, *, stacks: int) -> None:
        """stacks: the number of jobs at first; a stacked family has few jobs, which share the cores."""
        from orchestration.lanes.cluster import cores
        from orchestration.lanes.launch import Lanes, nothing_more
        from orchestration.lanes.progress import Watch

        threads = max(1, cores() // max(1, stacks)) if family(study.family).stacked else 1
        self.ledger = ledger
        self.watch = Watch(backbones=len(study.backbones))
        self.lanes = Lanes(
            ledger=ledger,
            resources=study.resources,
            on_event=self.watch,
            threads_per_lane=threads,
            afterwards=ledger.drop_model if study.resources.models == "none" else nothing_more,
        )
        self.launched: dict[str, Run] = {}
        self.given_up: set[str] = set()

    def close(self) -> None:
        """End the lanes."""
        self.lanes.close()

    def launch(self, plan: Plan) -> bool:
        """Execute what the ledger lacks, except runs that failed before. True if a person stopped it.

        If seeds are added one by one and lanes are idle, later seeds are trained ahead in them.
        """
        if not self._left(plan).jobs:
            return False
        ahead = with_seeds_ahead(plan, self.lanes.at_once(self._left(plan).jobs))
        if later := dict.fromkeys(run.seed for run in ahead.runs[len(plan.runs) :]):
            seeds = ", ".join(map(str, later))
            say(f"lanes are free: seed {seeds} at once with it, each judged in its turn")
        left = self._left(ahead)
        self.launched |= {run.id: run for run in left.left}
        reserve = plan.study.seeds.reserve
        with self.watch.awaiting(len(left.left)):
            outcome = self.lanes.run(left.jobs, more=bool(reserve) and ahead.runs[-1].seed != reserve[-1])
        self.given_up |= outcome.failed.keys()
        return outcome.stopped

    def unneeded(self, plan: Plan) -> list[Run]:
        """The runs trained ahead for seeds that the plan did not reach."""
        planned_ids = {run.id for run in plan.runs}
        return [run for run in self.launched.values() if run.id not in planned_ids and self.ledger.holds(run)]

    def _left(self, plan: Plan) -> Plan:
        """The plan with what the ledger holds now. Given-up runs count as finished, so that none starts again."""
        given_up = {entry for run in plan.runs if run.id in self.given_up for entry in run.entries}
        return replace(plan, finished=self.ledger.held(plan.runs) | given_up)
