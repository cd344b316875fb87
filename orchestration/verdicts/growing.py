"""Seeds until decided: the plan of a study with one more seed for the arms of claims that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.plan.held import as_scored
from orchestration.plan.plan import extend
from orchestration.verdicts.find import find, undecided_arms

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Plan
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def as_grown(study: Study, ledger: Ledger) -> tuple[Plan, tuple[str, ...]]:
    """What there is to report: the plan as `as_scored` has it, with the seeds that the study has come to.

    With the tasks that are of a version before the present one.
    """
    plan, before = as_scored(study, ledger)
    return grown(plan, ledger), before


def grown(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the reserve seeds that a study until decided has come to: the same steps as in `run`."""
    touched = plan.finished | ledger.failed().keys()
    while plan.study.seeds.reserve:
        wider = with_another_seed(plan, find(plan.study, plan.runs, ledger))
        if wider is None or not any(run.id in touched for run in wider.runs[len(plan.runs) :]):
            break
        plan = wider
    return plan


def with_another_seed(plan: Plan, findings: Findings) -> Plan | None:
    """The plan with the next reserve seed for the arms of open comparisons; None when all is said."""
    arms = undecided_arms(findings)
    spare = [seed for seed in plan.study.seeds.reserve if seed not in findings.seeds]
    if not arms or not spare:
        return None
    wider = extend(plan, spare[:1], arms)
    return wider if len(wider.runs) > len(plan.runs) else None
