"""What the ledger says of a study now: its plan and its verdicts, and what a reader is told with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.commands.waiting import JUDGING, doing
from orchestration.plan.held import scored_before
from orchestration.study.errors import StudyError
from orchestration.study.names import typed

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Plan
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import ConfirmedSearch, Findings


def standing(study: Study, ledger: Ledger, asked: str | None = None) -> tuple[Plan, Findings]:
    """The plan with the seeds that the study has come to, and its findings. asked: as `find` has it."""
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import as_grown

    with doing(JUDGING):
        plan, before = as_grown(study, ledger)
        findings = find(study, plan.runs, ledger, asked=asked)
    return plan, with_beside(findings, study, ledger, before)


def to_report(study: Study, ledger: Ledger) -> tuple[Plan, Findings]:
    """As `standing`. StudyError where no run of the study has finished: there is nothing to judge yet."""
    plan, findings = standing(study, ledger)
    if not findings.with_status("finished"):
        raise StudyError(
            f"{ledger.url}: holds no finished run of {study.name}\n  next: {typed('run', study.path)}"
        )
    return plan, findings


def with_beside(findings: Findings, study: Study, ledger: Ledger, before: tuple[str, ...] = ()) -> Findings:
    """The findings with the lines that stand `beside` them, and with the confirmations of the study's searches."""
    from orchestration.search.confirmed import confirmed_searches

    confirmed = confirmed_searches(study, ledger)
    return replace(findings, beside=beside(before, confirmed), confirmed=confirmed)


def beside(before: tuple[str, ...], confirmed: Sequence[ConfirmedSearch]) -> tuple[str, ...]:
    """Lines for a reader beside the verdicts: which tasks an earlier version scored, what searches confirmed.

    before: the names of those tasks.
    """
    return (*scored_before(before), *(one.words for one in confirmed))


def for_report(findings: Findings, study: Study, ledger: Ledger) -> Findings:
    """With what the files of a report show and no passport holds: papers' figures, costs, texts of items."""
    from orchestration.verdicts.costs import with_costs
    from orchestration.verdicts.item_texts import with_item_texts
    from orchestration.verdicts.published import with_published

    return with_item_texts(with_costs(with_published(findings, study)), study, ledger)
