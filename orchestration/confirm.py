"""The confirmation of a search: its best points against where they started, on fresh seeds and test data.

What a search reports of its winner is too good: it is the largest of many noisy means, on the data it was chosen
by. The confirmation is a study like any other, and the difference between the two is told as the optimism.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from orchestration.errors import StudyError
from orchestration.schema import Comparison
from search_spaces.space import settings_at

if TYPE_CHECKING:
    from orchestration.findings import Findings
    from orchestration.search import Searched, Trial
    from orchestration.study import Study


def confirmation(study: Study, searches: Sequence[Searched]) -> Study:
    """The study that puts the best points to the test.

    Each best point is an arm named after its number, so that a claim says which point it is about, beside the arm
    it started from: that one, tuned, is claimed to be better by the objective. The study's own comparisons follow
    with tuned arms in place of those that were searched. StudyError when no search found anything to confirm.
    """
    tuned = {found.selection.arm: _tuned(found) for found in searches}
    named = {arm: f"{arm}@{best.number}" for arm, best in tuned.items() if best is not None}
    if not named:
        raise StudyError(
            f"{study.path}: the search found no point better than the arms it started from\n"
            "  accepted: more trials, other dimensions; there is nothing to confirm"
        )
    backbone = searches[0].selection.backbone
    compare = [
        Comparison(
            claim=f"search {arm}",
            treatment=name,
            control=arm,
            metric=searches[0].selection.objectives[0].confirmed,
            expect="better",
            backbone=backbone,
        )
        for arm, name in named.items()
    ]
    compare += [
        _with_tuned(comparison, named, backbone)
        for comparison in study.compare
        if comparison.backbone in (None, backbone) and not named.keys().isdisjoint(_arms_of(comparison))
    ]
    used = {arm for comparison in compare for arm in _arms_of(comparison)}
    arms = dict(study.arms)
    for found in searches:
        best, selection = tuned[found.selection.arm], found.selection
        if best is not None:
            arms[named[selection.arm]] = settings_at(selection.space, selection.settings, best.point)
    return replace(
        study,
        name=f"{study.name}-confirmed",
        backbones=(backbone,),
        arms={name: settings for name, settings in arms.items() if name in used},
        compare=tuple(compare),
        search=None,
    )


def _tuned(found: Searched) -> Trial | None:
    """The best point, unless that is the arm itself."""
    best = found.best
    return None if best is None or best.point == found.trials[0].point else best


def _with_tuned(comparison: Comparison, named: Mapping[str, str], backbone: str) -> Comparison:
    return replace(
        comparison,
        claim=f"{comparison.claim} tuned",
        treatment=named.get(comparison.treatment, comparison.treatment),
        control=named.get(comparison.control, comparison.control),
        matched_control=named.get(comparison.matched_control or "", comparison.matched_control),
        backbone=backbone,
    )


def _arms_of(comparison: Comparison) -> list[str]:
    return [a for a in (comparison.treatment, comparison.control, comparison.matched_control) if a is not None]


@dataclass(frozen=True, kw_only=True)
class Optimism:
    """What a search said of its best point, and what came of it: means over seeds, in the metric's unit.

    chosen, confirmed: of the best point, on development data and selection seeds; on test data and fresh seeds.
    gain_chosen, gain_confirmed: its mean minus that of the arm it started from, with the sign that makes a gain
    positive. The test data may be harder than the development data; that touches both arms, and leaves the gains.
    """

    arm: str
    point: int
    metric: str
    test_metric: str
    chosen: float
    confirmed: float
    gain_chosen: float
    gain_confirmed: float
    selection_seeds: int
    fresh_seeds: int

    @property
    def line(self) -> str:
        """In words, for the terminal."""
        luck = self.gain_chosen - self.gain_confirmed
        return (
            f"optimism  {self.arm}@{self.point}: {self.metric} {self.chosen:.4f} over {self.selection_seeds} "
            f"selection seeds, {self.test_metric} {self.confirmed:.4f} over {self.fresh_seeds} fresh ones: "
            f"{self.chosen - self.confirmed:+.4f}\n"
            f"          gain over {self.arm}: {self.gain_chosen:+.4f} when chosen, {self.gain_confirmed:+.4f} "
            f"confirmed; {luck:+.4f} was luck, or the development data's own"
        )


def optimism(searches: Sequence[Searched], findings: Findings) -> list[Optimism]:
    """The optimism of every search that found a point, from the confirmation's findings; paired by seed."""
    told = []
    for found in searches:
        best, selection = _tuned(found), found.selection
        if best is None:
            continue
        objective, sign = selection.objectives[0], selection.signs[0]
        name = f"{selection.arm}@{best.number}"
        after = findings.values(name, selection.backbone, objective.confirmed)
        before = findings.values(selection.arm, selection.backbone, objective.confirmed)
        both = sorted(seed for seed in after.keys() & before.keys() if seed is not None)
        start = found.trials[0]
        shared = sorted(best.scores.keys() & start.scores.keys())
        told.append(
            Optimism(
                arm=selection.arm,
                point=best.number,
                metric=objective.metric,
                test_metric=objective.confirmed,
                chosen=best.mean(),
                confirmed=fmean(after[seed] for seed in both) if both else math.nan,
                gain_chosen=sign * fmean(best.scores[s][0] - start.scores[s][0] for s in shared)
                if shared
                else math.nan,
                gain_confirmed=sign * fmean(after[seed] - before[seed] for seed in both) if both else math.nan,
                selection_seeds=len(best.scores),
                fresh_seeds=len(both),
            )
        )
    return told
