"""A plan as the ledger stands: what is done, and how long it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.plan.plan import Facts, Plan, gather_facts
from orchestration.plan.plan import plan as make_plan

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from trainers.engine.world import Precision


def planned(study: Study, ledger: Ledger) -> Plan:
    """The plan with what the ledger holds and how long those runs took."""
    held = ledger.entries()
    facts = facts_where(study, lambda known: len(make_plan(study, known, held).done))
    plan = make_plan(study, facts, held)
    seconds = {run.id: sum(ledger.record(run).seconds.values()) for run in plan.done}
    trained = (run for run in plan.to_score if run.seed is not None)
    gone = frozenset(run.id for run in trained if not ledger.model_size(run))
    return replace(plan, facts=replace(facts, seconds=seconds), gone=gone)


def facts_where(study: Study, held: Callable[[Facts], int]) -> Facts:
    """What a plan rests on, in the precision of which the ledger holds most.

    `precision: auto` is what this machine is best at, unless the ledger holds the study's runs in the other one:
    a report read on a laptop is about the runs of the cluster. held: how much there is of what would be planned.
    """
    facts = gather_facts(study)
    other: Precision = "fp32" if facts.precision == "bf16" else "bf16"
    return max((facts, replace(facts, precision=other)), key=held)  # of equals the first: this machine's
