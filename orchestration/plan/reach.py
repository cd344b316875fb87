"""What the declared seeds can show, computed before any run: smallest p, smallest difference, reachable margins.

The computation uses the same interval as the verdict, which includes the variance of items if they are sampled.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evaluators.significance.level import ALPHA, POWER
from orchestration.plan.spread import Seen, Spread, spread

if TYPE_CHECKING:
    from evaluators.significance.claims import Claim
    from evaluators.significance.power import Aim
    from orchestration.plan.plan import Plan

NULL_TESTS = {"equivalent": "TOST", "not_worse": "one-sided t"}
MOST_SEEDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What `seeds` pairs can show about one comparison on one backbone, in a group of `claims`.

    test: the test that decides. smallest_p: the least p it can give (0: no floor). can_decide: whether that passes
    the first step of Holm.
    At that step and with power .80:
    smallest_effect, smallest_difference: what is detected, in sds of the paired deltas (None if items are sampled
    too) and in the metric's unit.
    seeds_for_margin: how many seeds settle the declared margin without an interim look, if the true difference is
    the observed one (0 if none is observed). 10,000: or more; None: no number of seeds does, or no margin is
    declared. on_margin: the same in words.
    Both rest on sd, of the deltas of single seeds, and item_sd, the standard error that `items` independent items
    leave with any number of seeds (0: unknown, or not sampled); whence: the sources of both. correlation: of the
    arms at equal seed. None: there are no data to compute it from.
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
    item_sd: float
    items: int
    whence: tuple[str, ...]
    correlation: float | None
    smallest_effect: float | None
    smallest_difference: float | None
    seeds_for_margin: int | None
    on_margin: str
    warnings: tuple[str, ...] = ()


def reachability(
    plan: Plan,
    seen: Seen | None = None,
    withdrawn: Mapping[str | None, int] | None = None,
    late: Collection[tuple[str, str | None]] = (),
) -> tuple[Reach, ...]:
    """One `Reach` for each claim (each part of a joint one) and backbone, at the most seeds the study allows.

    seen: finds what the ledger holds of a claim. withdrawn: further claims in the correction, as in `judge`.
    late: the (claim, backbone) that are exploratory, and so corrected apart.
    """
    from evaluators.significance.judge import group_of

    judged = [(claim, group_of(claim, (claim.claim, claim.backbone) in late)) for claim in plan.study.claims]
    size = {(False, group): nulls for group, nulls in (withdrawn or {}).items()}
    for claim, group in judged:
        size[group] = size.get(group, 0) + claim.nulls
    return tuple(_reach(plan, part, size[group], seen) for claim, group in judged for part in claim.parts)


def _reach(plan: Plan, claim: Claim, claims: int, seen: Seen | None) -> Reach:
    from evaluators.significance.power import smallest_effect
    from evaluators.significance.seed_tests import smallest_sign_flip_p
    from evaluators.significance.sequential import Sequential, level_of_t

    sides = (claim.sides["treatment"], claim.sides["control"])
    trained = any(plan.study.arms[arm].train for side in sides for arm in side.arms)
    n = len(plan.study.seeds.all) if trained else 0
    found = spread(plan, claim, seen)
    noise, crossed = found.noise, found.noise is not None and found.noise.groups > 0
    flips = min(1.0, smallest_sign_flip_p(n))
    growing = bool(plan.study.seeds.reserve) and n >= 2
    test, floor = _decided_by(claim, n, claims, flips, growing=growing, crossed=crossed)
    can_decide = floor * claims <= ALPHA
    level = ALPHA / claims
    if growing and can_decide:
        level = level_of_t(n, Sequential().tau2, level)
    effect = difference = None
    if (n >= 2 and can_decide) or (not trained and crossed):
        seeds = n if trained else math.inf
        difference = None if noise is None else smallest_effect(seeds, level, noise=noise)
        effect = None if crossed else smallest_effect(seeds, level)
    needed, on_margin = _margin(claim, found, ALPHA / claims) if trained else (None, "")
    reach = Reach(
        claim=claim.claim,
        backbone=claim.backbone or "",
        seeds=n,
        claims=claims,
        test=test,
        smallest_p=floor,
        sign_flip_floor=flips,
        can_decide=can_decide,
        sd=noise.sd if noise else None,
        item_sd=noise.item if noise else 0.0,
        items=noise.groups if noise else 0,
        whence=found.whence,
        correlation=found.correlation,
        smallest_effect=effect,
        smallest_difference=difference,
        seeds_for_margin=needed,
        on_margin=on_margin,
    )
    return replace(reach, warnings=tuple(_warnings(claim, reach)))


def _decided_by(
    claim: Claim, n: int, claims: int, flips: float, *, growing: bool, crossed: bool
) -> tuple[str, float]:
    """The test, and the least p that it can give (0: no floor). flips: the least p of an exact sign-flip test."""
    from evaluators.significance.seed_tests import seed_test
    from evaluators.significance.sequential import Sequential, smallest_anytime_p

    if growing:
        return "t e-process", smallest_anytime_p(n, Sequential().tau2)
    over_seeds = "crossed t" if crossed else seed_test(n, claims)
    if over_seeds != "none" and claim.expect in NULL_TESTS:
        return NULL_TESTS[claim.expect] + (" by crossed t" if crossed else ""), 0.0
    return over_seeds, 0.0 if over_seeds in ("paired t", "crossed t") else flips


def _margin(claim: Claim, found: Spread, level: float) -> tuple[int | None, str]:
    """The fewest seeds that settle the declared margin with power .80, and a text about it; None if none do."""
    from evaluators.significance.power import power, seeds_required

    if claim.margin is None or found.noise is None or claim.expect not in NULL_TESTS:
        return None, ""
    aim: Aim = "equivalent" if claim.expect == "equivalent" else "not worse"
    observed = found.observed or 0.0
    if claim.margin <= (abs(observed) if aim == "equivalent" else -observed):
        return None, "the difference seen so far lies outside the margin"
    target: dict[str, Any] = {"aim": aim, "effect": observed, "margin": claim.margin, "alpha": level}
    needed = seeds_required(found.noise, **target, cap=MOST_SEEDS)
    if needed is None and found.noise.groups and power(math.inf, found.noise, **target) < POWER:
        return None, f"no number of seeds settles the margin: the {found.noise.groups:,} items limit it"
    needed = needed or MOST_SEEDS
    return needed, f"the margin takes {needed:,} seeds"


def _warnings(claim: Claim, reach: Reach) -> Iterator[str]:
    from evaluators.significance.seed_tests import seed_test

    n, claims = reach.seeds, reach.claims
    growing = reach.test == "t e-process"
    floor = reach.smallest_p if growing else reach.sign_flip_floor
    needed, detected = reach.seeds_for_margin, reach.smallest_difference
    if n == 0:
        speaks = "only the items can speak" if claim.scope == "task" else "nothing can decide"
        yield f"neither arm is trained, so seeds change nothing and {speaks}"
    elif n == 1:
        yield "1 seed gives no verdict; 3 give an idea of the noise"
    elif growing and floor * claims > ALPHA:
        yield (
            f"an e-process of {n} seeds cannot go below p = {floor:.2g}{_over(claims, floor, '.2g')}: "
            "nothing can be decided; raise seeds.max"
        )
    elif not (growing or reach.items) and claim.expect in ("better", "worse") and floor * claims > ALPHA:
        least = next((more for more in range(n, MOST_SEEDS) if "flip" in seed_test(more, claims)), None)
        exact = f" (from {least} seeds on the sign-flip test decides)" if least else ""
        yield (
            f"an exact sign-flip test of {n} seeds cannot go below p = {floor:g}{_over(claims, floor, 'g')}; "
            f"without items the verdict rests on the paired t test, which takes the deltas for normal{exact}"
        )
    if needed is not None and needed > n:
        yield f"{n} seeds are not expected to settle a margin of {claim.margin:g}: it takes {needed} or more"
    if claim.min_effect is not None and detected is not None and claim.min_effect < detected:
        yield f"the smallest effect worth reporting, {claim.min_effect:g}, is below what {n} seeds can show"


def _over(claims: int, floor: float, form: str) -> str:
    """The end of a message with the smallest p after correction; "" for a single claim."""
    return f", or {min(1.0, floor * claims):{form}} over {claims} claims" if claims > 1 else ""
