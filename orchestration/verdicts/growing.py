"""Seeds until decided: the plan of a study with one more seed for the arms of claims that are open."""

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
    """What `as_scored` gives, the plan with the seeds that the study has come to."""
    plan, before = as_scored(study, ledger)
    return grown(plan, ledger), before


def grown(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the reserve seeds that a study until decided has come to, by the same steps as in `run`."""
    reserve = set(plan.study.seeds.reserve)
    touched = plan.finished | ledger.failed().keys() if reserve else frozenset()
    records = StudyRecords(plan.study, plan.runs, ledger, plan.finished)
    while reserve - set(records.seeds):
        wider = _widened(plan, arms_to_decide(records), records.seeds)
        if wider is None or not any(run.id in touched for run in wider.runs[len(plan.runs) :]):
            break
        plan, records = wider, records.of(wider.runs)
    return plan


def with_another_seed(plan: Plan, findings: Findings) -> Plan | None:
    """The plan with the next reserve seed for the arms of open comparisons; None when all is said."""
    return _widened(plan, undecided_arms(findings), findings.seeds)


def with_seeds_ahead(plan: Plan, lanes: int) -> Plan:
    """A plan that has come to a reserve seed, with as many later seeds for the same arms as keep all lanes busy.

    What is trained ahead is judged in its turn alone, seed after seed, so that a study stops where it would have
    stopped had each seed been trained when it was asked for.
    """
    reserve, newest = plan.study.seeds.reserve, plan.runs[-1].seed
    if newest not in reserve:
        return plan
    arms = {(run.arm, run.backbone) for run in plan.runs if run.seed == newest}
    later = reserve[reserve.index(newest) + 1 :]
    return extend(plan, later[: max(0, lanes // len(arms) - 1)], arms)


def _widened(plan: Plan, arms: set[tuple[str, str]], seeds: Sequence[int]) -> Plan | None:
    """seeds: those that the plan has come to."""
    spare = [seed for seed in plan.study.seeds.reserve if seed not in seeds]
    if not arms or not spare:
        return None
    wider = extend(plan, spare[:1], arms)
    return wider if len(wider.runs) > len(plan.runs) else None
