"""A plan as the ledger stands: what is done, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.plan.plan import Facts, Plan, extend, gather_facts
from orchestration.plan.plan import plan as make_plan

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from orchestration.study.study import Study
    from trainers.engine.world import Precision


def planned(study: Study, ledger: Ledger) -> Plan:
    """The plan with what the ledger holds and how long those runs took."""
    return _planned(study, ledger, [gather_facts(study)])


def as_scored(study: Study, ledger: Ledger) -> tuple[Plan, tuple[str, ...]]:
    """What there is to report: the plan by that version of the tasks of which the ledger holds most.

    And the names of the tasks that are read by their previous version: until the study is run again, the ledger
    is reported as it was scored. All arms are of one version; runs of two versions are never compared.
    """
    facts = gather_facts(study)
    plan = _planned(study, ledger, _versions(facts))
    return plan, tuple(name for name, now in facts.tasks.items() if plan.facts.tasks[name] != now)


def scored_before(names: tuple[str, ...]) -> tuple[str, ...]:
    """A line for the reader about tasks whose scores are of the previous version; none where there are none."""
    if not names:
        return ()
    return (f"scored by an earlier version of the task: {', '.join(names)}; `semray run` scores anew",)


def facts_where(study: Study, held: Callable[[Facts], int], *, as_scored: bool = False) -> Facts:
    """What a plan rests on, in the precision of which the ledger holds most.

    `precision: auto` is what this machine is best at, unless the ledger holds the study's runs in the other one:
    a report read on a laptop is about the runs of the cluster. held: how much the ledger holds of what these facts
    plan. as_scored: tasks may be of their previous version, too.
    """
    facts = gather_facts(study)
    return max(_readings(_versions(facts) if as_scored else [facts]), key=held)


def _planned(study: Study, ledger: Ledger, versions: Sequence[Facts]) -> Plan:
    """The plan of which the ledger holds most, over these versions of the tasks and both precisions."""
    readings = _readings(versions)
    at_first = len(readings) if ledger.remote else 1  # a remote ledger answers one question about all as fast
    plans = _with_held(study, readings[:at_first], ledger)
    if all(one.left for one in plans):  # else no other reading could hold more
        plans += _with_held(study, readings[at_first:], ledger)
    plan = max(plans, key=lambda one: len(one.done))
    timed = plan.done if plan.left else ()  # the time of the rest is estimated from these; a report needs none
    records = ledger.records(timed)
    seconds = {run_id: sum(record.seconds.values()) for run_id, record in records.items()}
    costs = _costs(records)
    gone = ledger.without_model(run for run in plan.to_score if run.seed is not None)
    return replace(plan, facts=replace(plan.facts, seconds=seconds, costs=costs), gone=gone)


def with_recorded_costs(plan: Plan, ledger: Ledger) -> Plan:
    """A plan of which nothing is left, with what each of its runs recorded of its cost; others have it already."""
    return replace(plan, facts=replace(plan.facts, costs=_costs(ledger.records(plan.done))))


def _costs(records: Mapping[str, Record]) -> dict[str, Mapping[str, float]]:
    return {run_id: record.cost for run_id, record in records.items() if record.cost}


def _with_held(study: Study, readings: Sequence[Facts], ledger: Ledger) -> list[Plan]:
    """The plan by each reading, with what the ledger holds of them all."""
    plans = [make_plan(study, facts) for facts in readings]
    held = ledger.held(run for one in plans for run in _could_ask(one))
    return [replace(one, finished=held) for one in plans]


def _could_ask(plan: Plan) -> Sequence[Run]:
    """The runs of a plan, and those that more seeds would add."""
    study = plan.study
    return extend(plan, study.seeds.reserve, [(arm, on) for arm in study.arms for on in study.backbones]).runs


def _versions(facts: Facts) -> list[Facts]:
    return [facts] if facts.before is None else [facts, facts.before]


def _readings(versions: Sequence[Facts]) -> list[Facts]:
    """The facts by which a ledger may be read, the likeliest first: present version, this machine's precision."""
    other: Precision = "fp32" if versions[0].precision == "bf16" else "bf16"
    return [one for facts in versions for one in (facts, replace(facts, precision=other))]
