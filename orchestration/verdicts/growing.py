"""Seeds until decided: plans with more seeds for the arms of claims that are still open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.plan.held import as_scored
from orchestration.plan.plan import extend
from orchestration.verdicts.find import arms_to_decide, undecided_arms
from orchestration.verdicts.records import StudyRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Plan
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def as_grown(study: Study, ledger: Ledger) -> tuple[Plan, tuple[str, ...]]:
    """As `as_scored`, with the reserve seeds that the study has reached added to the plan."""
    plan, earlier_tasks = as_scored(study, ledger)
    return grown(plan, ledger), earlier_tasks


def grown(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the reserve seeds that the study has reached, added by the same steps as in `run`."""
    return grown_and_next(plan, ledger)[0]


def grown_and_next(plan: Plan, ledger: Ledger) -> tuple[Plan, Plan | None]:
    """As `grown`, and that plan with the seed that open claims ask for next; None while it has runs left."""
    reserve = set(plan.study.seeds.reserve)
    if not reserve:
        return plan, None
    started = plan.finished | ledger.failed().keys()
    records = StudyRecords(plan.study, plan.runs, ledger, plan.finished)
    while reserve - set(records.seeds):
        wider = _widened(plan, arms_to_decide(records), records.seeds)
        if wider is None or not any(run.id in started for run in wider.runs[len(plan.runs) :]):
            return plan, None if plan.left else wider
        plan, records = wider, records.of(wider.runs)
    return plan, None


def with_another_seed(plan: Plan, findings: Findings) -> Plan | None:
    """The plan with the next reserve seed for the arms of open claims; None if nothing is open or left."""
    return _widened(plan, undecided_arms(findings), findings.seeds)


def with_seeds_ahead(plan: Plan, lanes: int) -> Plan:
    """A plan that ends with a reserve seed, with so many later seeds for the same arms that all lanes are busy.

    Seeds that are trained ahead are still judged one by one, so that a study stops at the same seed as without.
    """
    reserve, newest = plan.study.seeds.reserve, plan.runs[-1].seed
    if newest not in reserve:
        return plan
    arms = {(run.arm, run.backbone) for run in plan.runs if run.seed == newest}
    later = reserve[reserve.index(newest) + 1 :]
    return extend(plan, later[: max(0, lanes // len(arms) - 1)], arms)


def _widened(plan: Plan, arms: set[tuple[str, str]], seeds: Sequence[int]) -> Plan | None:
    """The plan with the next reserve seed for these arms, or None. seeds: those that the plan has."""
    spare = [seed for seed in plan.study.seeds.reserve if seed not in seeds]
    wider = extend(plan, spare[:1], arms)
    return wider if len(wider.runs) > len(plan.runs) else None
