"""A plan as the ledger stands: what is done, how long it took, what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.plan.plan import Plan, gather_facts
from orchestration.plan.plan import plan as make_plan

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from trainers.engine.world import Precision


def planned(study: Study, ledger: Ledger) -> Plan:
    """The plan with what the ledger holds and how long those runs took.

    `precision: auto` is what this machine is best at, unless the ledger holds the study's runs in the other one:
    a report read on a laptop is about the runs of the cluster.
    """
    facts, held = gather_facts(study), ledger.entries()
    other: Precision = "fp32" if facts.precision == "bf16" else "bf16"
    plans = [make_plan(study, known, held) for known in (facts, replace(facts, precision=other))]
    plan = max(plans, key=lambda one: len(one.done))  # of equals the first: this machine's
    seconds = {run.id: sum(ledger.record(run).seconds.values()) for run in plan.done}
    return replace(plan, facts=replace(plan.facts, seconds=seconds))
