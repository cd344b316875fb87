"""Keeps and reads the outcome of a search's confirmation: the point, the date and the verdict.

`semray confirm` writes one small file beside the search for each point that it tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from orchestration.ledger.notes import now
from orchestration.ledger.points import Confirmed, SearchOutcome
from orchestration.plan.held import facts_where
from orchestration.search.confirm import tuned
from orchestration.search.trials import selections
from orchestration.study.names import typed
from orchestration.verdicts.findings import ConfirmedSearch
from search_spaces.space import settings_at

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.plan import Facts
    from orchestration.search.trials import Searched, Selection
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def keep_confirmed(searches: Sequence[Searched], findings: Findings, ledger: Ledger) -> None:
    """Keep each best point's verdict in the ledger. All runs of the confirmation must be done."""
    verdicts = {one.verdict.claim: one.verdict for one in findings.findings if not one.verdict.part_of}
    for found in searches:
        if not (best := tuned(found)):
            continue
        points = found.selection.points(ledger)
        verdict = verdicts[f"search {found.selection.arm}"]
        outcome = Confirmed(
            treatment=verdict.treatment,
            control=verdict.control,
            metric=verdict.metric,
            verdict=verdict.verdict,
            exploratory=verdict.exploratory,
            seeds=verdict.n_seeds,
            confirmed_at=now(),
        )
        earlier = points.confirmed().get(best.number)
        if earlier is None or outcome != replace(earlier, confirmed_at=outcome.confirmed_at):
            points.confirm(best.number, outcome)


def confirmed_searches(study: Study, ledger: Ledger) -> tuple[ConfirmedSearch, ...]:
    """The outcomes of the confirmations of a study's searches; empty if nothing was confirmed.

    This reads a few small files of each search, and none of its runs.
    """
    known = set() if study.search is None else set(ledger.searches(study.name))
    if not known:
        return ()

    @cache  # both loops over the searches below ask for it
    def outcome(search: str) -> SearchOutcome | None:
        return ledger.points(study.name, search).outcome()

    def at_best(selection: Selection) -> Any:
        """The settings at the best point that the search last wrote down."""
        last = outcome(selection.id)
        if last is None or last.best is None:
            return selection.settings
        return settings_at(selection.space, selection.settings, last.point)

    def searches_known(facts: Facts) -> int:
        return sum(one.id in known for one in selections(study, facts, at_best))

    found = []
    for selection in selections(study, facts_where(study, searches_known, as_scored=True), at_best):
        if selection.id in known and (tested := selection.points(ledger).confirmed()):
            found.append(_confirmed(selection, tested, outcome(selection.id)))
    return tuple(found)


def _confirmed(
    selection: Selection, tested: Mapping[int, Confirmed], last: SearchOutcome | None
) -> ConfirmedSearch:
    """The confirmation of the best point, else the latest. tested: number of the point -> its outcome."""
    best = last.best if last else None
    number = max(tested, key=lambda one: (one == best, tested[one].confirmed_at))
    return ConfirmedSearch(
        **asdict(tested[number]),
        arm=selection.arm,
        point=number,
        best=best,
        moved_on=last is not None and best != number,
        ended=last is not None and last.ended,
        words=f"search {selection.arm}: {_tested(tested[number])}; {_since(selection, number, last)}",
    )


def _tested(outcome: Confirmed) -> str:
    seeds = f"{outcome.seeds} fresh seed{'s' * (outcome.seeds != 1)}{', exploratory' * outcome.exploratory}"
    against = f"{outcome.treatment} was put to the test against {outcome.control} on {outcome.confirmed_at[:10]}"
    return f"{against}: {outcome.verdict} by {outcome.metric} over {seeds}"


def _since(selection: Selection, number: int, last: SearchOutcome | None) -> str:
    """Words on what the search has found since, or on how to see the confirmation again."""
    path = selection.study.path
    again = typed("confirm", path)
    if last is None or (last.best == number and not last.ended):
        return f"the search has not ended: {typed('search', path)} goes on"
    if last.best == number:
        return f"{again} shows it again"
    if last.best:
        return f"since then another point is the best, {selection.arm}@{last.best}: {again}"
    return "since then no point is better than what the search began with"
