"""A plan with what the ledger holds: which runs are done, how long they took, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.families.registry import family
from orchestration.plan.plan import Facts, Plan, extend, gather_facts
from orchestration.plan.plan import plan as make_plan
from orchestration.study.errors import StudyError
from orchestration.study.run import DATA, TRAINING

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run
    from orchestration.study.study import Study
    from trainers.engine.world import Precision


def planned(study: Study, ledger: Ledger) -> Plan:
    """The plan of a study, with the finished runs of the ledger."""
    return _planned(study, ledger, [gather_facts(study)])


def as_scored(study: Study, ledger: Ledger) -> tuple[Plan, tuple[str, ...]]:
    """The plan to report, and the names of the tasks that it reads in their previous version.

    It uses the task versions of which the ledger holds most, so that an older ledger is reported as it was scored
    until the study is run again. All arms use one version: runs of two versions are never compared.
    """
    facts = gather_facts(study)
    plan = _planned(study, ledger, _versions(facts))
    return plan, tuple(name for name, now in facts.tasks.items() if plan.facts.tasks[name] != now)


def scored_before(names: tuple[str, ...]) -> tuple[str, ...]:
    """A line about tasks whose scores are of the previous version; empty without such tasks."""
    if not names:
        return ()
    return (f"scored by an earlier version of the task: {', '.join(names)}; `semray run` scores anew",)


def facts_where(study: Study, held: Callable[[Facts], int], *, as_scored: bool) -> Facts:
    """The facts of a study in the precision of which the ledger holds most.

    `precision: auto` means the best precision of this machine, unless the ledger holds the study's runs in the
    other: a report read on a laptop is about the runs of the cluster. held: counts what the ledger holds of a plan
    with given facts. as_scored: whether tasks may also be of their previous version.
    """
    facts = gather_facts(study)
    return max(_readings(_versions(facts) if as_scored else [facts]), key=held)


def _planned(study: Study, ledger: Ledger, versions: Sequence[Facts]) -> Plan:
    """The plan of which the ledger holds most, among these versions of the facts and both precisions."""
    readings = _readings(versions)
    first_look = len(readings) if ledger.remote else 1  # remote, all are as fast as one
    plans = _with_held(study, readings[:first_look], ledger)
    if all(candidate.left for candidate in plans):  # else no other reading could hold more
        plans += _with_held(study, readings[first_look:], ledger)
    return max(plans, key=lambda candidate: len(candidate.done))


def with_times(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the times and costs of its finished runs, which tell those of the rest, and with `gone`."""
    records = ledger.records(plan.done)
    seconds = {run_id: sum(record.seconds.values()) for run_id, record in records.items()}
    scoring = {run_id: _scoring(record) for run_id, record in records.items()}
    costs = {run_id: record.cost for run_id, record in records.items() if record.cost}
    gone = ledger.without_model(run for run in plan.to_score if run.seed is not None)
    return replace(plan, facts=replace(plan.facts, seconds=seconds, scoring=scoring, costs=costs), gone=gone)


def _scoring(record: Record) -> float:
    """The seconds of a run after its training."""
    return sum(spent for name, spent in record.seconds.items() if name not in (DATA, TRAINING))


def check_kept(plan: Plan, ledger: Ledger) -> None:
    """StudyError for a task that reads what the finished runs of an arm did not leave."""
    scored = {run.arm for run in plan.done}

    def kept() -> list[tuple[Run, frozenset[str]]]:
        runs = [run.remaining(plan.finished) for run in plan.to_score if run.arm not in scored]
        return list(zip(runs, ledger.model_files(runs), strict=True))

    try:
        family(plan.study.family).check_kept(plan.study, kept)
    except ValueError as error:
        raise StudyError(f"{plan.study.path}: {error}") from None


def _with_held(study: Study, readings: Sequence[Facts], ledger: Ledger) -> list[Plan]:
    """One plan for each reading of the facts, with the entries that the ledger holds."""
    plans = [make_plan(study, facts) for facts in readings]
    held = ledger.held(run for candidate in plans for run in _with_reserve(candidate))
    return [replace(candidate, finished=held) for candidate in plans]


def _with_reserve(plan: Plan) -> Sequence[Run]:
    """The runs of a plan, and those that its reserve seeds would add."""
    study = plan.study
    return extend(plan, study.seeds.reserve, {(arm, name) for arm in study.arms for name in study.backbones}).runs


def _versions(facts: Facts) -> list[Facts]:
    return [facts] if facts.before is None else [facts, facts.before]


def _readings(versions: Sequence[Facts]) -> list[Facts]:
    """The facts by version and precision, the likeliest first: present version, this machine's precision."""
    other: Precision = "fp32" if versions[0].precision == "bf16" else "bf16"
    return [reading for facts in versions for reading in (facts, replace(facts, precision=other))]
