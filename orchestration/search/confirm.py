"""The confirmation of a search: its best points against where they started, on fresh seeds and test data.

A search overestimates its best point: its score is the largest of many noisy means, on the data it was chosen by.
The confirmation is an ordinary study; the difference between the two scores is reported as the optimism.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from corpora.store.fields import changed, flat
from evaluators.significance.claims import Claim, ClaimSide, Declared, Joint, sides_of
from evaluators.tasks.task import is_dev
from orchestration.families.registry import family
from orchestration.plan.held import planned
from orchestration.study.errors import StudyError
from orchestration.study.names import CONFIRMED, typed
from orchestration.study.run import canonical
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.seen import could_be_seen

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.search.trials import Searched, Trial
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings

StandIn = tuple[str, Any]  # an arm of the confirmation: its name and its settings


def confirmation(study: Study, searches: Sequence[Searched]) -> Study:
    """The study that tests the best points.

    Each best point is an arm named after its number, and is claimed to be better by the objective than the arm its
    search started from. The study's own comparisons follow: tuned arms replace the searched ones, and the other
    trained arms get the same settings. StudyError if no search found a better point than its start, or if a search
    has no point with all seeds yet.
    """
    for found in searches:
        _check_finished(study, found)
    points = _points(searches)
    chosen = [found.selection for found in searches if tuned(found)]
    if not chosen:
        raise StudyError(
            f"{study.path}: the search found no point better than the arms it started from\n"
            "  accepted: more trials, other dimensions; there is nothing to confirm"
        )
    starts = {one.start: one.settings for one in chosen}
    backbone, arms = searches[0].selection.backbone, {**study.arms, **starts, **dict(points.values())}
    compare: list[Declared] = [
        Claim(
            claim=f"search {one.arm}",
            treatment=points[one.arm][0],
            control=one.start,
            metric=searches[0].selection.objectives[0].confirmed,
            expect="better",
            backbone=backbone,
        )
        for one in chosen
    ]
    for repeated, stand_ins in _repetitions(study, backbone, points):
        if not _why_not(study, repeated, arms | stand_ins):
            compare.append(repeated)
            arms |= stand_ins
    used = {arm for claim in compare for arm in claim.arms}
    return replace(
        study,
        name=f"{study.name}{CONFIRMED}",
        backbones=(backbone,),
        arms={name: settings for name, settings in arms.items() if name in used},
        compare=tuple(compare),
        search=None,
    )


def not_repeated(study: Study, searches: Sequence[Searched]) -> dict[str, str]:
    """The study's tuned comparisons that its confirmation leaves out: claim -> reason."""
    backbone, points = searches[0].selection.backbone, _points(searches)
    arms = {**study.arms, **dict(points.values())}
    reasons = {
        claim.claim: _why_not(study, claim, arms | stand_ins)
        for claim, stand_ins in _repetitions(study, backbone, points)
    }
    return {claim: why for claim, why in reasons.items() if why}


def undeclared(study: Study, chosen: Study, ledger: Ledger) -> list[str]:
    """The study's own claims that are not declared yet and that the runs of its confirmation will show."""
    if ledger.declared(study.name) is not None:
        return []
    plan = planned(study, ledger)
    records = StudyRecords(study, plan.runs, ledger, plan.finished)
    shown = [claim for claim in study.compare if chosen.arms.keys() >= set(claim.arms)]
    return [claim.claim for claim in shown if not could_be_seen(records, claim)]


def _points(searches: Sequence[Searched]) -> dict[str, StandIn]:
    return {found.selection.arm: _stand_in(found) for found in searches}


def _repetitions(
    study: Study, backbone: str, points: Mapping[str, StandIn]
) -> Iterator[tuple[Declared, dict[str, Any]]]:
    """The study's own comparisons that have a tuned arm, rewritten for the tuned arms; with those arms."""
    moved = {arm for arm, (name, _) in points.items() if name != arm}
    for claim in (one for declared in study.compare for one in declared.each([backbone])):
        other_backbones = {on for _, on in sides_of(claim.resolved(study.figures).parts)} - {backbone}
        if not other_backbones and not moved.isdisjoint(claim.arms):
            yield _repeated(study, claim, points)


def _why_not(study: Study, claim: Declared, arms: Mapping[str, Any]) -> str:
    """Why a comparison would confirm nothing, or "". A best point may be the same recipe as the arm beside it."""
    if any(is_dev(figure) for part in claim.parts for figure in study.figures_of(part.metric)):
        return "it is of development data, which a search chooses by, and would confirm nothing"
    return "both sides are one recipe, nothing is left to compare" if _coincides(study, claim, arms) else ""


def _coincides(study: Study, claim: Declared, arms: Mapping[str, Any]) -> bool:
    """Whether two sides of the claim, or of one of its parts, have the same recipes."""
    defining = family(study.family).defining

    def recipes(side: ClaimSide) -> tuple[bytes, ...]:
        return tuple(canonical(defining(arms[arm])) for arm in side.arms)

    sides = [list(map(recipes, part.sides.values())) for part in claim.resolved(study.figures).parts]
    return any(len(set(each)) < len(each) for each in sides)


def _check_finished(study: Study, found: Searched) -> None:
    best = found.best
    if best is None or len(best.scores) < len(found.selection.seeds):
        raise StudyError(
            f"{study.path}: the search around {found.selection.arm} has no point with all seeds in the ledger\n"
            f"  next: {typed('search', study.path)}, with more trials or budget where it has ended"
        )


def tuned(found: Searched) -> Trial | None:
    """The best point, unless that is the arm itself."""
    best = found.best
    return None if best is None or best.point == found.trials[0].point else best


def _stand_in(found: Searched) -> StandIn:
    """The best point as an arm: B1@17; or the arm itself."""
    best, selection = tuned(found), found.selection
    if best is None:
        return selection.start, selection.settings
    return f"{selection.arm}@{best.number}", found.at_best


def _repeated(study: Study, claim: Declared, points: Mapping[str, StandIn]) -> tuple[Declared, dict[str, Any]]:
    """A comparison between tuned arms, and those arms. `tuned alike`: some of them take another arm's point."""
    searched = next(arm for arm in claim.arms if arm in points)
    arms, point = claim.arms, points[searched]
    takes = {arm: points.get(arm) or _alike(study, arm, searched, point) for arm in arms}
    alike = any(name != arm for arm, (name, _) in takes.items() if arm not in points)
    repeated = claim.renamed({arm: name for arm, (name, _) in takes.items()})
    return _with_ending(repeated, f"tuned{' alike' if alike else ''}"), dict(takes.values())


def _with_ending(claim: Declared, ending: str) -> Declared:
    """The claim with this ending on its own name and its parts'. A part may be named like the search's claim."""
    if isinstance(claim, Joint):
        claim = replace(claim, all=tuple(replace(part, claim=f"{part.claim} {ending}") for part in claim.all))
    return replace(claim, claim=f"{claim.claim} {ending}")


def _alike(study: Study, arm: str, searched: str, point: StandIn) -> StandIn:
    """An arm that was not searched, beside one that was: settings that both had in common follow the point.

    Settings in which they differ stay, as these are compared. An untrained arm stays as it is, and so does one
    that none of the changed settings affects.
    """
    mine, (point_name, settings) = study.arms[arm], point
    own, before, after = flat(mine), flat(study.arms[searched]), flat(settings)
    moved = changed(mine, {name: after[name] for name in own if name in before and own[name] == before[name]})
    defining = family(study.family).defining
    if not mine.train or defining(moved) == defining(mine):
        return arm, mine
    return f"{arm}@{point_name}", moved


@dataclass(frozen=True, kw_only=True)
class Optimism:
    """The best point's score in its search and in the confirmation: means over seeds, in the metric's unit.

    chosen: the score on development data and selection seeds. confirmed: on test data and fresh seeds.
    optimism: how much better chosen is than confirmed. start: the arm that the search began with. gain_chosen,
    gain_confirmed: how much better the point is than that start; None if no seed has scores of both. Test data
    that is harder than the development data lowers both arms, and so hardly the gains.
    """

    arm: str
    start: str
    point: int
    metric: str
    test_metric: str
    chosen: float
    confirmed: float | None
    optimism: float | None
    gain_chosen: float | None
    gain_confirmed: float | None
    selection_seeds: int
    fresh_seeds: int

    @property
    def line(self) -> str:
        """The optimism in words, for the terminal."""
        tested = f"{self.test_metric} not known"
        if self.confirmed is not None:
            tested = (
                f"{self.test_metric} {self.confirmed:.4f} over {self.fresh_seeds} fresh ones: {self.optimism:+.4f}"
            )
        return (
            f"optimism  {self.arm}@{self.point}: {self.metric} {self.chosen:.4f} over {self.selection_seeds} "
            f"selection seeds, {tested}\n"
            f"          gain over {self.start}: {_signed(self.gain_chosen)} when chosen, "
            f"{_signed(self.gain_confirmed)} confirmed; {self._luck}"
        )

    @property
    def _luck(self) -> str:
        if self.gain_chosen is None:
            return "no selection seed has scores of both"
        if self.gain_confirmed is None:
            return "no fresh seed has scores of both"
        luck = self.gain_chosen - self.gain_confirmed
        return "none of it was luck" if luck <= 0 else f"{luck:+.4f} was luck, or the development data's own"


def optimism(searches: Sequence[Searched], findings: Findings) -> list[Optimism]:
    """The optimism of every search that found a better point, from the confirmation's findings; paired by seed."""
    gaps = []
    for found in searches:
        best, selection = tuned(found), found.selection
        if best is None:
            continue
        objective, sign = selection.objectives[0], selection.signs[0]
        arms = (f"{selection.arm}@{best.number}", selection.start)
        after, before = (_scored(findings, arm, selection.backbone, objective.confirmed) for arm in arms)
        both = after.keys() & before.keys()
        start = found.trials[0]
        shared = best.scores.keys() & start.scores.keys()
        confirmed = _mean(after[seed] for seed in both)
        gaps.append(
            Optimism(
                arm=selection.arm,
                start=selection.start,
                point=best.number,
                metric=objective.metric,
                test_metric=objective.confirmed,
                chosen=best.mean(),
                confirmed=confirmed,
                optimism=None if confirmed is None else sign * (best.mean() - confirmed),
                gain_chosen=_mean(sign * (best.scores[seed][0] - start.scores[seed][0]) for seed in shared),
                gain_confirmed=_mean(sign * (after[seed] - before[seed]) for seed in both),
                selection_seeds=len(best.scores),
                fresh_seeds=len(both),
            )
        )
    return gaps


def _scored(findings: Findings, arm: str, backbone: str, metric: str) -> dict[int, float]:
    """The finite scores of an arm's runs: seed -> score."""
    found = findings.values(arm, backbone, metric).items()
    return {seed: value for seed, value in found if seed is not None and math.isfinite(value)}


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


def _signed(gain: float | None) -> str:
    return "not known" if gain is None else f"{gain:+.4f}"
