"""The evidence of one claim before correction for its group: the deciding test, and all p values of the claim."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from evaluators.metrics.item_metrics import aggregate, makes_up
from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.item_bootstrap import INTERVAL_RESAMPLES, RESAMPLES, Undefined, resampled_deltas
from evaluators.significance.item_tests import (
    ItemVariance,
    ItemView,
    SingleRun,
    crossed_t,
    item_variance,
    item_view,
    single_run,
)
from evaluators.significance.level import ALPHA
from evaluators.significance.paired_items import Items, ItemScores, ItemsError, ItemSum
from evaluators.significance.power import Noise
from evaluators.significance.seed_tests import ROUNDING, Estimate, paired_t, sd, seed_p
from evaluators.significance.sequential import Anytime, Sequential

PLANNED = 400  # resamples for estimates in plans, which are shown to two digits
ON_TASK, ON_TASKS = "on the task", "on these tasks"
ON_TEST_SET, OVER_TASKS = "on this test set", "over these tasks"
DEGENERATE, OUTLIER = "degenerate", "outlier"
DRIFT = "later seeds contradict earlier ones (the confidence sequence is empty)"
VIEWS: WeakKeyDictionary[Items, dict[tuple[int, str, bool], ItemView]] = WeakKeyDictionary()
IDENTICAL = "identical results"
WITHIN_ROUNDING = "the arms differ by no more than the rounding of scores of this size"
FLAG_OF = {IDENTICAL: "check_arms_differ", WITHIN_ROUNDING: "within_rounding"}  # the flag of each refusal
ITEM_FRAGILE = "seed-robust but item-fragile"
SEED_FRAGILE = "item-robust but seed-fragile"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What all claims of a group share.

    nulls: how many of their null hypotheses can be true together. withdrawn: how many of those belong to claims
    that were declared and have since been withdrawn. digest: `family_digest` of the claims.
    """

    nulls: int
    sequential: Sequential | None = None
    withdrawn: int = 0
    exploratory: bool = False
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class ItemEvidence:
    view: ItemView
    crossed: Estimate | None  # None when neither seeds nor items vary
    alone: Estimate | None  # of items alone: these runs on other items


@dataclass(frozen=True, kw_only=True)
class Share:
    """Part of the gain over the control that is also a gain over the matched control; a description."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence of one claim, or of a part of a joint claim.

    lines: the p values that may be reported and so enter the group's correction, by name: "difference",
    "equivalent", "not worse", "worse", "signal"; NaN if the data allow no test. refusal: why there is no test, in
    words. flat: the deltas have no spread.
    """

    deltas: np.ndarray
    flat: bool
    scope: str
    lines: dict[str, float]
    refusal: str | None = None
    test: str | None = None
    estimate: Estimate | Anytime | None = None  # None where the deltas have no spread
    items: ItemEvidence | None = None
    p_seeds_alone: float | None = None
    p_items_alone: float | None = None
    single_run: SingleRun | None = None
    each_run: tuple[SingleRun, ...] = ()  # of every paired seed, for correlations
    against_matched: Evidence | None = None
    share: Share | None = None
    flags: tuple[str, ...] = ()

    @property
    def sign(self) -> float:
        """Sign of the difference; for growing seeds, at the look with the strongest evidence."""
        return float(np.sign(self.estimate.mean if self.estimate else self.deltas.mean()))

    @property
    def noise(self) -> Noise:
        """The noise that the deciding test found in the deltas. Without items they must not be all equal."""
        spread = sd(self.deltas)
        if self.items is None or self.estimate is not self.items.crossed:
            return Noise(sd=spread)
        view = self.items.view
        return view.variance.noise(0.0 if self.flat else spread, len(self.deltas), view)


def generator_key(comparison: str, purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{comparison}|{purpose}".encode()).digest()[:8], "big")


def stream(comparison: str, purpose: str) -> np.random.Generator:
    """The random stream of one purpose in one comparison: equal names give equal numbers on every machine."""
    return np.random.Generator(np.random.Philox(key=generator_key(comparison, purpose)))


def gather(claim: Claim, pairs: PairedSeeds, rules: Rules, *, in_full: bool = True) -> Evidence:
    """The evidence of a claim's paired scores; with in_full=False only its lines, without descriptive figures.

    The deciding test depends on the number of seeds and claims, on whether there are items, and on the declared
    hypothesis, never on a p, a mean or a check of normality. Raises ItemsError if items contradict the scores.
    """
    if claim.matched_control is not None and pairs.matched_control is None:
        raise ValueError(f"claim {claim.claim}: no scores of the matched control {claim.matched_control}")
    refused = Evidence(
        deltas=pairs.deltas,
        flat=pairs.flat,
        scope=OVER_TASKS if pairs.tasks else ON_TEST_SET,
        lines=dict.fromkeys(_kinds(claim), math.nan),
        flags=_outliers(pairs),
    )
    refusal = _refusal(pairs)
    if refusal in FLAG_OF:
        return replace(refused, refusal=refusal, flags=(FLAG_OF[refusal],))
    if refusal:
        alone = single_run(pairs.items) if len(pairs.seeds) == 1 and pairs.items else None
        return replace(refused, refusal=refusal, single_run=alone)
    _check_items(claim, pairs)
    of_task = claim.scope == "task" and not rules.sequential
    try:
        items = _items(claim, pairs, in_full)
    except Undefined as error:
        if of_task:
            return replace(refused, refusal=str(error))
        items = None
    crossed = items.crossed if items and of_task else None
    if crossed is not None and not in_full:
        tested = replace(refused, test="crossed t", estimate=crossed, lines=_lines(claim, crossed.p, crossed))
    else:
        each_run = _each_run(pairs) if in_full else ()
        tested = replace(_tested(refused, claim, pairs, items, rules), each_run=each_run)
    return tested if claim.matched_control is None else _isolated(tested, claim, pairs, rules, in_full)


def noise_of(claim: Claim, pairs: PairedSeeds, *, with_items: bool) -> Noise:
    """The noise of a claim's deltas, estimated as in its verdict; without items if their variance is unknown.

    If that takes resamples, PLANNED are drawn: the relative error of a standard error is then 1/√(2·400) = 3.5 %,
    with a verdict's resamples 1.6 %.
    """
    n, spread = len(pairs.seeds), 0.0 if pairs.flat else sd(pairs.deltas)
    if pairs.items is None or not with_items:
        return Noise(sd=spread)
    try:
        variance = _of_data(item_variance(pairs.items, stream(claim.scores, "items"), PLANNED), pairs.scale)
    except Undefined:
        return Noise(sd=spread)
    return variance.noise(spread, n, pairs.items)


def _kinds(claim: Claim) -> list[str]:
    """The p values that the claim may report; each is a line in the group's correction."""
    if claim.expect == "not_worse":
        return ["not worse", "worse"]
    kinds = ["difference", "equivalent"] if claim.margin else ["difference"]
    return [*kinds, "signal"] if claim.matched_control else kinds


def _refusal(pairs: PairedSeeds) -> str | None:
    if not pairs.seeds:
        return "no complete pair"
    if pairs.runs_missing:
        return "runs missing"
    if len(pairs.seeds) == 1:
        return "needs at least 1 more seed (3 to estimate noise)"
    if pairs.identical:
        return WITHIN_ROUNDING if pairs.deltas.any() else IDENTICAL
    return None


def _outliers(pairs: PairedSeeds) -> tuple[str, ...]:
    """A flag naming seeds whose delta is an outlier, as of a crashed run, which would spoil any test of a mean."""
    if pairs.flat:
        return ()
    distance = np.abs(pairs.deltas - np.median(pairs.deltas))
    limit = max(6 * np.median(distance), ROUNDING * pairs.scale)
    odd = [seed for seed, far in zip(pairs.seeds, distance > limit, strict=True) if far]
    return (f"{OUTLIER}: seed {', '.join(map(str, odd))}",) if odd else ()


def _check_items(claim: Claim, pairs: PairedSeeds) -> None:
    """Raise ItemsError unless the items add up to the scores; else their variance would not be the scores'."""
    of_arm = [("treatment", pairs.items, "treatment"), ("control", pairs.items, "control")]
    of_arm += [("matched_control", pairs.matched_items, "control")]
    for arm, items, side in of_arm:
        if items is None:
            continue
        if isinstance(items, ItemSum):
            _check_sum(claim, pairs, items, pairs.matched_deltas if arm == "matched_control" else pairs.deltas)
            continue
        for seed, score, row in zip(pairs.seeds, getattr(pairs, arm), getattr(items, side), strict=True):
            value = aggregate(items.aggregate, row, items.gold)
            if not makes_up(value, score):
                where = f"claim {claim.claim}: {claim.metric} of {arm} at seed {seed}"
                raise ItemsError(f"{where} is {score}, but its items give {value}")


def _check_sum(claim: Claim, pairs: PairedSeeds, items: ItemSum, deltas: np.ndarray) -> None:
    for row, (seed, delta) in enumerate(zip(pairs.seeds, pairs.sign * deltas, strict=True)):
        figures = [
            (weight, *(aggregate(term.aggregate, arm[row], term.gold) for arm in (term.treatment, term.control)))
            for weight, term in items.terms
        ]
        value = sum(weight * (treatment - control) for weight, treatment, control in figures)
        if not makes_up(value, delta, size=max(max(map(abs, of_arms)) for _, *of_arms in figures)):
            where = f"claim {claim.claim}: {claim.metric} at seed {seed}"
            raise ItemsError(f"{where} differs by {delta}, but its items by {value}")


def _items(claim: Claim, pairs: PairedSeeds, in_full: bool) -> ItemEvidence | None:
    if pairs.items is None:
        return None
    view = _view(pairs.items, pairs.sign, claim.scores, interval=in_full)
    view = replace(view, variance=_of_data(view.variance, pairs.scale))
    v_item, groups = view.variance.v_item, view.effective
    deltas = np.full(len(pairs.seeds), pairs.deltas.mean()) if pairs.flat else pairs.deltas
    return ItemEvidence(
        view=view,
        crossed=crossed_t(deltas, v_item, groups, view.variance.v_both) if v_item or np.ptp(deltas) else None,
        alone=Estimate(float(deltas.mean()), math.sqrt(v_item), groups - 1) if v_item else None,
    )


def _of_data(variance: ItemVariance, scale: float) -> ItemVariance:
    """The variance, or 0 if the items spread by no more than the rounding of the scores."""
    rounding = math.sqrt(variance.v_item) <= ROUNDING * scale
    return ItemVariance(0.0, 0.0, variance.method) if rounding else variance


def _view(items: Items, sign: int, comparison: str, *, interval: bool) -> ItemView:
    """`item_view`, cached per items: when seeds are added for other claims, unchanged items are not resampled."""
    views = VIEWS.setdefault(items, {})
    key = sign, comparison, interval
    if key not in views:
        views[key] = item_view(items, sign, stream(comparison, "items"), interval=interval)
    return views[key]


def _each_run(pairs: PairedSeeds) -> tuple[SingleRun, ...]:
    """For every seed the test that papers apply to one run of each arm, for correlations only. The runs share
    their items, so the tests are shown as a range and never pooled."""
    if not isinstance(pairs.items, ItemScores) or pairs.items.aggregate not in ("spearman", "pearson"):
        return ()
    tests = (single_run(pairs.items, row) for row in range(len(pairs.seeds)))
    return tuple(test for test in tests if test is not None)


def _tested(
    untested: Evidence, claim: Claim, pairs: PairedSeeds, items: ItemEvidence | None, rules: Rules
) -> Evidence:
    """Apply the test that the decision table gives for these data."""
    deltas = pairs.deltas
    over_seeds = None if pairs.flat else paired_t(deltas, pairs.scale)
    seed_test, p = seed_p(deltas, over_seeds, claims=rules.nulls, rng=lambda: stream(claim.scores, "sign-flip"))
    p_seeds = None if pairs.frozen else _declared_p(claim, over_seeds, p)
    p_items = _declared_p(claim, items.alone, items.alone.p) if items and items.alone else None
    evidence = replace(untested, items=items, p_seeds_alone=p_seeds, p_items_alone=p_items)
    estimate: Estimate | Anytime | None = over_seeds
    if items and items.crossed and claim.scope == "task" and not rules.sequential:
        seed_test, p, estimate = "crossed t", items.crossed.p, items.crossed
        evidence = replace(evidence, scope=ON_TASKS if pairs.tasks else ON_TASK)
    elif pairs.frozen:
        refusal = "neither arm varies with the seed, so seeds are no evidence"
        return replace(evidence, refusal=refusal, flags=(DEGENERATE, *evidence.flags))
    elif rules.sequential:  # equal deltas leave the e-process at 1: a sign-flip test could reject at some look
        estimate = None if pairs.flat else Anytime(tuple(deltas.tolist()), rules.sequential.tau2, pairs.scale)
        seed_test, p = "t e-process", estimate.p if estimate else 1.0
    if isinstance(estimate, Anytime) and np.subtract(*estimate.interval(ALPHA)) > 0:
        return replace(evidence, refusal=DRIFT)  # the deltas do not have one common mean
    flags = [DEGENERATE] if estimate is None else []
    if items and items.crossed:
        flags += _fragile(p_seeds, p_items, _declared_p(claim, items.crossed, items.crossed.p))
    return replace(
        evidence,
        test=_test_name(claim, seed_test, estimate),
        estimate=estimate,
        lines=_lines(claim, p, estimate),
        flags=(*flags, *evidence.flags),
    )


def _test_name(claim: Claim, test: str, estimate: Estimate | Anytime | None) -> str | None:
    """The test's name. A sign-flip test has no margin, so "not worse" uses the one-sided t instead."""
    if claim.expect == "not_worse" and estimate is None:
        return None
    if claim.expect != "not_worse" or test == "t e-process":
        return test
    return "one-sided crossed t" if test == "crossed t" else "one-sided paired t"


def _declared_p(claim: Claim, estimate: Estimate | None, p: float) -> float | None:
    """The p of the declared hypothesis, given p of the difference."""
    if claim.expect in ("better", "worse"):
        return p
    if estimate is None or claim.margin is None:
        return None
    return estimate.p_equivalent(claim.margin) if claim.expect == "equivalent" else estimate.p_above(-claim.margin)


def _lines(claim: Claim, p: float, estimate: Estimate | Anytime | None) -> dict[str, float]:
    lines = dict.fromkeys(_kinds(claim), math.nan)
    if "difference" in lines:
        lines["difference"] = p
    if estimate is not None and claim.margin is not None:
        if claim.expect == "not_worse":
            lines["not worse"] = estimate.p_above(-claim.margin)
            lines["worse"] = estimate.p_interval_below(-claim.margin)
        else:
            lines["equivalent"] = estimate.p_equivalent(claim.margin)
    return lines


def _fragile(p_seeds: float | None, p_items: float | None, p_crossed: float | None) -> list[str]:
    """Flags if the test over seeds alone and the crossed test disagree."""
    if p_seeds is None or p_crossed is None:
        return []
    if p_seeds <= ALPHA < p_crossed:
        return [ITEM_FRAGILE]
    if p_seeds > ALPHA and min(p_crossed, 1.0 if p_items is None else p_items) <= ALPHA:
        return [SEED_FRAGILE]
    return []


def _isolated(evidence: Evidence, claim: Claim, pairs: PairedSeeds, rules: Rules, in_full: bool) -> Evidence:
    """Add the comparison with the matched control. Both must reject (intersection-union), so the signal's p is the
    larger one; it needs no correction within the claim."""
    assert claim.matched_control is not None
    assert pairs.matched_control is not None
    second = gather(
        replace(claim, control=claim.matched_control, matched_control=None, signal=None),
        replace(
            pairs,
            control=pairs.matched_control,
            items=pairs.matched_items,
            matched_control=None,
            matched_items=None,
        ),
        rules,
        in_full=in_full,
    )
    signal = np.max([evidence.lines["difference"], second.lines["difference"]])  # NaN if either is
    return replace(
        evidence,
        against_matched=second,
        lines=evidence.lines | {"signal": float(signal)},
        share=_share(claim, pairs, evidence) if in_full else None,
    )


def _share(claim: Claim, pairs: PairedSeeds, evidence: Evidence) -> Share | None:
    """(T - C) / (T - B) with a percentile interval over seeds, and over items if there are any; C is the matched
    control and B the control."""
    if evidence.estimate is None:
        return None
    low, high = evidence.estimate.interval(ALPHA)
    if low <= 0 <= high:
        return None
    n = len(pairs.seeds)
    rng = stream(claim.scores, "share")
    counts = rng.multinomial(n, np.full(n, 1 / n), size=INTERVAL_RESAMPLES)  # (B, n)
    gain, rest = pairs.deltas[:, None], pairs.matched_deltas[:, None]  # (n, 1): the same for every replicate
    if pairs.items is not None and pairs.matched_items is not None:
        drawn = resampled_deltas(_stacked(pairs.items, pairs.matched_items), rng, RESAMPLES)
        if drawn is not None:
            repeated = np.tile(
                drawn, INTERVAL_RESAMPLES // RESAMPLES
            )  # (2n, B): 5 draws of seeds per draw of items
            gain, rest = pairs.sign * repeated[:n], pairs.sign * repeated[n:]
    rests, gains = (counts.T * rest).sum(0), (counts.T * gain).sum(0)
    ratios = rests[gains != 0] / gains[gains != 0]  # a replicate without any gain has no share
    limits = np.quantile(ratios, [ALPHA / 2, 1 - ALPHA / 2])
    return Share(
        value=float(pairs.matched_deltas.mean() / pairs.deltas.mean()), low=float(limits[0]), high=float(limits[1])
    )


def _stacked(items: Items, matched: Items) -> ItemSum:
    """Both comparisons in one object, so that they share every resample of items."""
    both = zip(items.terms, matched.terms, strict=True)
    return ItemSum(tuple((weight, _stacked_one(term, other)) for (weight, term), (_, other) in both))


def _stacked_one(items: ItemScores, matched: ItemScores) -> ItemScores:
    if items.item_ids != matched.item_ids or items.group_ids != matched.group_ids:
        raise ItemsError("items: the matched control was scored on other items")
    return replace(
        items,
        treatment=np.concatenate([items.treatment, matched.treatment]),
        control=np.concatenate([items.control, matched.control]),
    )
