"""The current plan and findings of a study by what the ledger holds, with notes for the reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.commands.waiting import JUDGING, doing
from orchestration.ledger.place import at
from orchestration.plan.held import scored_before
from orchestration.study.errors import StudyError
from orchestration.study.names import typed

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Plan
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import ConfirmedSearch, Findings


def current_findings(study: Study, ledger: Ledger, asked: str | None = None) -> tuple[Plan, Findings]:
    """The plan with the seeds that the study has reached, and its findings. asked: as in `find`."""
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import as_grown

    with doing(JUDGING):
        plan, before = as_grown(study, ledger)
        findings = find(study, plan.runs, ledger, asked=asked)
    return plan, with_beside(findings, study, ledger, before)


def to_report(study: Study, ledger: Ledger) -> tuple[Plan, Findings]:
    """As `current_findings`. StudyError if no run of the study is finished."""
    plan, findings = current_findings(study, ledger)
    if not findings.with_status("finished"):
        raise StudyError(
            f"{ledger.url}: holds no finished run of {study.name}\n"
            f"  next: {typed('run', study.path, *at(ledger.url))}"
        )
    return plan, findings


def with_beside(findings: Findings, study: Study, ledger: Ledger, before: tuple[str, ...] = ()) -> Findings:
    """The findings with the notes from `beside`, and with the confirmations of the study's searches."""
    from orchestration.search.confirmed import confirmed_searches

    confirmed = confirmed_searches(study, ledger)
    return replace(findings, beside=beside(before, confirmed), confirmed=confirmed)


def beside(before: tuple[str, ...], confirmed: Sequence[ConfirmedSearch]) -> tuple[str, ...]:
    """Notes beside the verdicts: tasks that an earlier version scored, confirmations of searches.

    before: the names of those tasks.
    """
    return (*scored_before(before), *(one.words for one in confirmed))


def for_report(findings: Findings, study: Study, ledger: Ledger) -> Findings:
    """The findings with what only report files show: papers' figures, costs, texts of items."""
    from orchestration.verdicts.costs import with_costs
    from orchestration.verdicts.item_texts import with_item_texts
    from orchestration.verdicts.published import with_published

    return with_item_texts(with_costs(with_published(findings, study)), study, ledger)
