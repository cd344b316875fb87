"""What is known of a search's confirmation without judging it anew: which point, when, and what came of it.

`semray confirm` writes it down beside the search, one small file for each point that it put to the test.
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
    """Write down what the confirmation of these searches came to, when all of its runs are done."""
    verdicts = {one.verdict.claim: one.verdict for one in findings.findings if not one.verdict.part_of}
    for found in searches:
        if not (best := tuned(found)):
            continue
        points = found.selection.points(ledger)
        verdict = verdicts[f"search {found.selection.arm}"]
        told = Confirmed(
            treatment=verdict.treatment,
            control=verdict.control,
            metric=verdict.metric,
            verdict=verdict.verdict,
            exploratory=verdict.exploratory,
            seeds=verdict.n_seeds,
            confirmed_at=now(),
        )
        earlier = points.confirmed().get(best.number)
        if earlier is None or told != replace(earlier, confirmed_at=told.confirmed_at):
            points.confirm(best.number, told)


def confirmed_searches(study: Study, ledger: Ledger) -> tuple[ConfirmedSearch, ...]:
    """What the confirmations of a study's searches came to; none where nothing was confirmed.

    A few small files are read of each search, and no run of it.
    """
    known = set() if study.search is None else set(ledger.searches(study.name))
    if not known:
        return ()

    @cache  # the searches are gone through twice
    def outcome(search: str) -> SearchOutcome | None:
        return ledger.points(study.name, search).outcome()

    def at_best(selection: Selection) -> Any:
        """The settings at the point that was best when the search was last asked for."""
        came = outcome(selection.id)
        if came is None or came.best is None:
            return selection.settings
        return settings_at(selection.space, selection.settings, came.point)

    def there(facts: Facts) -> int:
        return sum(one.id in known for one in selections(study, facts, at_best))

    found = []
    for selection in selections(study, facts_where(study, there, as_scored=True), at_best):
        if selection.id in known and (tested := selection.points(ledger).confirmed()):
            found.append(_confirmed(selection, tested, outcome(selection.id)))
    return tuple(found)


def _confirmed(
    selection: Selection, tested: Mapping[int, Confirmed], came: SearchOutcome | None
) -> ConfirmedSearch:
    """The point that is the best now, else the one tested last. tested: what came of each, by its number."""
    best = came.best if came else None
    number = max(tested, key=lambda one: (one == best, tested[one].confirmed_at))
    return ConfirmedSearch(
        **asdict(tested[number]),
        arm=selection.arm,
        point=number,
        best=best,
        moved_on=came is not None and best != number,
        ended=came is not None and came.ended,
        words=f"search {selection.arm}: {_tested(tested[number])}; {_since(selection, number, came)}",
    )


def _tested(told: Confirmed) -> str:
    seeds = f"{told.seeds} fresh seed{'s' * (told.seeds != 1)}{', exploratory' * told.exploratory}"
    against = f"{told.treatment} was put to the test against {told.control} on {told.confirmed_at[:10]}"
    return f"{against}: {told.verdict} by {told.metric} over {seeds}"


def _since(selection: Selection, number: int, came: SearchOutcome | None) -> str:
    """What became of the search since, or where to see the confirmation again."""
    path = selection.study.path
    again = typed("confirm", path)
    if came is None or (came.best == number and not came.ended):
        return f"the search has not ended: {typed('search', path)} goes on"
    if came.best == number:
        return f"{again} shows it again"
    if came.best:
        return f"since then another point is the best, {selection.arm}@{came.best}: {again}"
    return "since then no point is better than what the search began with"
