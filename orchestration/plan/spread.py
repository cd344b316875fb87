"""How much the deltas of a comparison vary, as far as it is known before the verdict, and the source of that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.tasks.task import named
from orchestration.families.registry import family

if TYPE_CHECKING:
    from evaluators.metrics.scores import Aggregate
    from evaluators.significance.claims import Claim
    from evaluators.significance.comparisons import PairedSeeds
    from evaluators.significance.power import Noise
    from orchestration.plan.plan import Plan
    from orchestration.study.study import Study

NUMBERS = {2: "two", 3: "three", 4: "four"}
ENOUGH_PAIRS = 3  # so many finished pairs are enough to estimate the spread from


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One finished run of an arm: its score on the compared metric. groups: the number of its independent items.

    effective: the effective number of groups, of the rarer class if the figure is by class.
    """

    arm: str
    score: float
    groups: int
    effective: float
    aggregate: Aggregate


@dataclass(frozen=True, kw_only=True)
class SeenPairs:
    """What the ledger holds of a claim. sample: None if no run of its arms kept its items."""

    pairs: PairedSeeds
    sample: Sample | None


Seen = Callable[["Claim"], SeenPairs]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """noise: in the metric's unit, None if unknown. whence: its sources in words.

    observed: the mean delta. correlation: of the arms at equal seed. Both need enough finished pairs.
    """

    noise: Noise | None
    whence: tuple[str, ...]
    observed: float | None = None
    correlation: float | None = None


def spread(plan: Plan, claim: Claim, seen: Seen | None) -> Spread:
    """The spread from finished pairs, by the formula of the verdict; without enough, from public figures."""
    sides = [claim.sides[role] for role in ("treatment", "control")]
    trained = sum(plan.study.arms[arm].train for side in sides for arm in side.arms)
    held = seen(claim) if seen else None
    with_items = claim.scope == "task" and not plan.study.seeds.reserve
    if held and len(held.pairs.seeds) >= (ENOUGH_PAIRS if trained else 1):
        return _of_pairs(claim, held.pairs, trained > 0, with_items)
    if not trained:
        return Spread(noise=None, whence=("neither arm is trained",))
    public = family(plan.study.family).spread
    if public is None or _own_unit(plan.study, claim):
        few = f"fewer than {ENOUGH_PAIRS}" if held and len(held.pairs.seeds) else "no"
        return Spread(noise=None, whence=(f"{few} finished pairs, and no public figure for such a score",))
    from evaluators.significance.power import Noise

    sd, source = public
    of_arms = f"; {NUMBERS[trained]} arms, taken as uncorrelated" if trained > 1 else ""
    item, words = _guess_of_items(held.sample if held else None) if with_items else (0.0, ())
    sample = held.sample if item and held else None
    groups, item_df = (sample.groups, sample.effective - 1) if sample else (0, None)
    return Spread(
        noise=Noise(sd=sd * math.sqrt(trained), item=item, groups=groups, item_df=item_df),
        whence=(source + of_arms, *words),
    )


def _own_unit(study: Study, claim: Claim) -> bool:
    """Whether a claim is about figures with a unit of their own, which are no scores."""
    tasks = named(family(study.family).tasks(study.data), study.evaluate)
    figures = study.figures_of(claim.metric)
    return any(figure in task.metrics for task in tasks if task.own_unit for figure in figures)


def _of_pairs(claim: Claim, pairs: PairedSeeds, trained: bool, items: bool) -> Spread:
    from evaluators.significance.evidence import noise_of

    noise = noise_of(claim, pairs, with_items=items)
    constant = len(set(pairs.treatment)) == 1 or len(set(pairs.control)) == 1
    source = f"{len(pairs.seeds)} finished pairs" if trained else "the items of both arms, which are not trained"
    if not max(noise.sd, noise.item):
        return Spread(noise=None, whence=(f"{source} are all equal" if trained else "neither arm is trained",))
    return Spread(
        noise=noise,
        whence=(f"{source}, items included" if noise.groups and trained else source,),
        observed=float(pairs.deltas.mean()),
        correlation=None if constant else _correlation(pairs),
    )


def _correlation(pairs: PairedSeeds) -> float:
    import numpy as np

    from evaluators.metrics.item_metrics import pearson

    return pearson(np.array(pairs.treatment), np.array(pairs.control))


def _guess_of_items(sample: Sample | None) -> tuple[float, tuple[str, ...]]:
    """The items' part of the standard error and its source, guessed from one arm's score as if items of two arms
    correlated 0.5."""
    unknown = "the items' part is not known before a run has finished, and comes on top"
    if sample is None:
        return 0.0, (unknown,)
    if sample.aggregate in ("spearman", "pearson"):
        variance, formula = (1 - sample.score**2) ** 2 / sample.groups, "(1 - r²)²/M"
    elif sample.aggregate == "sd":
        variance, formula = sample.score**2 / (2 * sample.groups), "s²/2M"
    elif 0 <= sample.score <= 1:
        variance, formula = sample.score * (1 - sample.score) / sample.groups, "p(1 - p)/M"
    else:
        return 0.0, (unknown,)
    source = f"items: {formula} of {sample.arm} at {sample.score:.3f} with {sample.groups:,} items, a guess"
    return math.sqrt(variance), (source,)
