"""What the declared seeds can show, said before any run: smallest p, smallest difference, margins within reach."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.significance.power import Aim
    from orchestration.plan.plan import Plan
    from orchestration.study.blocks import Comparison

ALPHA = 0.05
NULL_TESTS = {"equivalent": "TOST", "not_worse": "one-sided t"}
MOST_SEEDS = 10_000
ENOUGH_PAIRS = 3  # finished pairs from which their own spread is taken

Metrics = Mapping[str, Mapping[str, float]]  # run id -> metric -> value, of finished runs


@dataclass(frozen=True)
class Spread:
    """How far one recipe's score moves between seeds: standard deviation, in the metric's unit, and its source."""

    sd: float
    source: str


# By family, for studies that have no finished pairs yet; an order of magnitude for any score in [0, 1].
# Simple-SimCSE, results/bert-base-uncased.csv, column avg / 100: 50 seeds, mean .7511, sd .0084.
PUBLIC = {
    "concept": Spread(0.0084, "public: SimCSE on BERT-base, 7 STS tasks, 50 seeds (Tsukagoshi 2022)"),
}


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What `seeds` pairs can say about one comparison on one backbone, in a family of `claims`.

    test decides over seeds; smallest_p is the least it can give (0: no floor) and can_decide says whether that
    passes Holm's first step. At that step and with power .80, smallest_effect (in sds of the paired deltas) and
    smallest_difference (in the metric's unit) are detected, and seeds_for_margin (10,000: or more) settle the
    declared margin where there is no true difference and nobody looks before the end. All rest on sd (whence:
    sd_source) and on seeds alone: where items are sampled too (scope: task), their noise comes on top.
    correlation is that of the arms at equal seed. None: nothing to compute it from.
    """

    claim: str
    backbone: str
    seeds: int
    claims: int
    test: str
    smallest_p: float
    sign_flip_floor: float
    can_decide: bool
    sd: float | None
    sd_source: str
    correlation: float | None
    smallest_effect: float | None
    smallest_difference: float | None
    seeds_for_margin: int | None
    warnings: tuple[str, ...]


def reachability(plan: Plan, metrics: Metrics | None = None) -> tuple[Reach, ...]:
    """One `Reach` per comparison and backbone, at the most seeds the study allows. metrics: of finished runs."""
    pairs = list(plan.study.comparisons)
    return tuple(_reach(plan, comparison, backbone, len(pairs), metrics or {}) for comparison, backbone in pairs)


def _reach(plan: Plan, comparison: Comparison, backbone: str, claims: int, metrics: Metrics) -> Reach:
    from evaluators.significance.power import reachable, smallest_effect
    from evaluators.significance.sequential import smallest_anytime_p

    trained = [arm for arm in (comparison.treatment, comparison.control) if plan.study.arms[arm].train]
    n = len(plan.study.seeds.all) if trained else 0
    known = reachable(n, claims, alpha=ALPHA)
    growing = bool(plan.study.seeds.reserve) and n >= 2
    floor = smallest_anytime_p(n) if growing else known.smallest_p
    decidable = floor * claims <= ALPHA
    level = _level_of_e_process(n, claims) if growing and decidable else ALPHA / claims
    sd, source, correlation = _spread(plan, comparison, backbone, len(trained), metrics)
    effect = smallest_effect(n, level) if n >= 2 and (decidable or not growing) else None
    detected = effect * sd if effect and sd else None
    needed = _seeds_for_margin(comparison, sd, ALPHA / claims)
    test = "t e-process" if growing else known.test
    if test not in ("t e-process", "none"):
        test = NULL_TESTS.get(comparison.expect, test)
    sharpest = floor if growing else known.sign_flip_floor
    return Reach(
        claim=comparison.claim,
        backbone=backbone,
        seeds=n,
        claims=claims,
        test=test,
        smallest_p=floor if test in (known.test, "t e-process") else 0.0,
        sign_flip_floor=known.sign_flip_floor,
        can_decide=decidable or test not in (known.test, "t e-process"),
        sd=sd,
        sd_source=source,
        correlation=correlation,
        smallest_effect=effect,
        smallest_difference=detected,
        seeds_for_margin=needed,
        warnings=tuple(_warnings(comparison, n, sharpest, claims, detected, needed, growing)),
    )


def _level_of_e_process(n: int, claims: int) -> float:
    """The two-sided level of a t test that rejects where the e-process does after n seeds.

    Looking earlier can only reject more often, so the power computed at this level is a lower bound.
    """
    from scipy import optimize, special

    from evaluators.significance.sequential import Sequential, e_at_t

    tau2 = Sequential().tau2
    t = optimize.brentq(lambda t: math.log(e_at_t(t, n, tau2) * ALPHA / claims), 0.0, 1e6)
    return 2 * float(special.stdtr(n - 1, -t))


def _spread(
    plan: Plan, comparison: Comparison, backbone: str, trained: int, metrics: Metrics
) -> tuple[float | None, str, float | None]:
    """The sd of the paired deltas, where it is from, and the correlation of the arms at equal seed."""
    scores = _paired(plan, comparison, backbone, metrics)
    if len(scores) >= ENOUGH_PAIRS:
        treatment, control = zip(*scores, strict=True)
        sd = statistics.stdev(a - b for a, b in scores)
        constant = len(set(treatment)) == 1 or len(set(control)) == 1
        correlation = None if constant else statistics.correlation(treatment, control)
        return sd, f"{len(scores)} finished pairs", correlation
    if not trained:
        return None, "neither arm is trained", None
    public = PUBLIC.get(plan.study.family)
    if public is None or comparison.metric.startswith("geometry/"):
        return None, "no finished pairs, and no public figure for such a score", None
    if trained == 1:
        return public.sd, public.source, None
    return public.sd * math.sqrt(2), f"{public.source}; two arms, taken as uncorrelated", None


def _paired(plan: Plan, comparison: Comparison, backbone: str, metrics: Metrics) -> list[tuple[float, float]]:
    """(treatment, control) at every seed where both runs are finished and have the metric."""
    pairs = []
    for seed in plan.study.seeds.all:
        runs = [plan.run(arm, backbone, seed) for arm in (comparison.treatment, comparison.control)]
        values = [metrics.get(run.id, {}).get(comparison.metric) for run in runs if run is not None]
        if len(values) == 2 and None not in values:
            pairs.append((values[0], values[1]))
    return pairs  # type: ignore[return-value]  # no None is left


def _seeds_for_margin(comparison: Comparison, sd: float | None, level: float) -> int | None:
    """Least number of seeds that settle the declared margin with power .80 when there is no difference."""
    from evaluators.significance.power import seeds_required

    if comparison.margin is None or not sd or comparison.expect not in NULL_TESTS:
        return None
    aim: Aim = "equivalent" if comparison.expect == "equivalent" else "not worse"
    return seeds_required(comparison.margin / sd, aim=aim, alpha=level, cap=MOST_SEEDS) or MOST_SEEDS


def _warnings(
    comparison: Comparison,
    n: int,
    floor: float,
    claims: int,
    detected: float | None,
    needed: int | None,
    growing: bool,
) -> Iterator[str]:
    """floor: the smallest p of the exact sign-flip test or, where seeds are added, of the e-process."""
    if n == 0:
        speaks = "only the items can speak" if comparison.scope == "task" else "nothing can decide"
        yield f"neither arm is trained, so seeds change nothing and {speaks}"
    elif n == 1:
        yield "1 seed gives no verdict; 3 give an idea of the noise"
    elif growing and floor * claims > ALPHA:
        yield (
            f"an e-process of {n} seeds cannot go below p = {floor:.2g}, or {min(1.0, floor * claims):.2g} over "
            f"{claims} claims: nothing can be decided; raise seeds.max"
        )
    elif not growing and comparison.expect in ("better", "worse") and floor * claims > ALPHA:
        least = math.ceil(1 + math.log2(claims / ALPHA))
        yield (
            f"an exact sign-flip test of {n} seeds cannot go below p = {floor:g}, or {min(1.0, floor * claims):g} "
            f"over {claims} claims; the verdict rests on the paired t test, which takes the deltas for normal "
            f"({least} seeds would allow an exact test)"
        )
    if needed is not None and needed > n:
        yield f"{n} seeds are not expected to settle a margin of {comparison.margin:g}: it takes {needed} or more"
    if comparison.min_effect is not None and detected is not None and comparison.min_effect < detected:
        yield f"the smallest effect worth reporting, {comparison.min_effect:g}, is below what {n} seeds can show"
