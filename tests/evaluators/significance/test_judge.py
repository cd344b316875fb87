"""Verdicts from outside: the rows of the decision table, its edge cases, families, words and records."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluators.significance.claims import Claim, Joint
from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.decision import decide, said_p
from evaluators.significance.evidence import Rules, gather
from evaluators.significance.item_tests import steiger
from evaluators.significance.judge import family_digest, judge
from evaluators.significance.paired_items import ItemScores, ItemsError, ItemSum, align_items
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict, record

BASE = (
    0.61,
    0.62,
    0.6,
    0.63,
    0.64,
    0.615,
    0.605,
    0.59,
    0.6,
    0.61,
    0.625,
    0.585,
    0.615,
    0.6,
    0.63,
    0.62,
    0.61,
    0.6,
    0.59,
    0.6,
)
DELTAS = [0.6, 0.2, 0.9, -0.1, 0.4, 0.7, 0.3, 0.5, 0.35, 0.8, 0.1, 0.45]
EIGHT = [0.6, 0.2, 0.9, -0.1, 0.4, 0.7, 0.3, 0.5]


def claim(expect: str = "better", name: str = "H1", **declared: object) -> Claim:
    return Claim(claim=name, treatment="A", control="B", metric="score", expect=expect, **declared)  # type: ignore[arg-type]


def paired(deltas: list[float] | np.ndarray, **more: object) -> PairedSeeds:
    control = BASE[: len(deltas)]
    treatment = tuple(float(c + d) for c, d in zip(control, deltas, strict=True))
    return PairedSeeds(seeds=tuple(range(len(deltas))), treatment=treatment, control=control, **more)  # type: ignore[arg-type]


def verdict(deltas: list[float] | np.ndarray, expect: str = "better", **declared: object) -> Verdict:
    return judge([(claim(expect, **declared), paired(deltas))])[0]


def mean_items(
    n: int, m: int, *, seed_sd: float, item_sd: float, noise: float, effect: float = 0.0, seed: int = 0
) -> PairedSeeds:
    """Item scores whose treatment minus control is effect + seed effect + item effect + residual."""
    rng = np.random.default_rng(seed)
    delta = effect + rng.normal(0, seed_sd, (n, 1)) + rng.normal(0, item_sd, m) + rng.normal(0, noise, (n, m))
    control = rng.normal(0.5, 0.1, (n, m))
    return with_items(delta + control, control)


def with_items(
    treatment: np.ndarray, control: np.ndarray, kind: str = "mean", gold: np.ndarray | None = None
) -> PairedSeeds:
    from evaluators.metrics.item_metrics import aggregate

    ids = tuple(map(str, range(treatment.shape[1])))
    items = ItemScores(
        aggregate=kind, treatment=treatment, control=control, gold=gold, item_ids=ids, group_ids=ids
    )  # type: ignore[arg-type]
    scores = [tuple(aggregate(items.aggregate, row, gold) for row in rows) for rows in (treatment, control)]
    return PairedSeeds(seeds=tuple(range(len(treatment))), treatment=scores[0], control=scores[1], items=items)


# --- worked verdicts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deltas", "declared", "words", "test", "p", "interval"),
    [
        ([0.8, 1.1, 0.6], {}, "better", "paired t", 0.02908, (0.2082, 1.4585)),
        ([0.8, 1.1, -0.1], {"min_effect": 0.5}, "undecided: needs about 12 more seeds (up to 54)", "paired t", 0.237999, (-0.9513, 2.1513)),
        ([0.4, 0.5, 0.3, 0.6, 0.45], {}, "better", "paired t", 0.000844, (0.3112, 0.5888)),
        ([0.4, 0.5, 0.3, 0.6, 0.45], {"margin": 1.0}, "better, but inside the margin", "paired t", 0.000844, (0.3112, 0.5888)),
        ([0.1, -0.2, 0.05, 0.15, -0.1], {"margin": 0.5}, "equivalent within ±0.5", "paired t", 1.0, None),
        ([0.1, -0.2, 0.05, 0.15, -0.1], {"expect": "equivalent", "margin": 0.2}, "equivalent within ±0.2", "paired t", 1.0, None),
        ([1.2, 1.5, 0.9, 1.4, 1.1], {"expect": "equivalent", "margin": 0.5}, "better, beyond the margin", "paired t", 0.000335, (0.9236, 1.5164)),
        (EIGHT, {}, "better", "exact sign-flip", 0.015625, (0.1772, 0.6978)),
        ([-0.3, -0.5, -0.2, -0.6, -0.4], {}, "worse", "paired t", 0.004813, (-0.5963, -0.2037)),
    ],
)  # fmt: skip
def test_worked_verdicts(deltas, declared, words, test, p, interval):
    found = verdict(deltas, **declared)
    assert found.words == words
    assert found.test == test
    scale = 1 if test == "exact sign-flip" else np.std(deltas, ddof=1) / math.sqrt(len(deltas))  # the mean, or t
    assert found.statistic == pytest.approx(np.mean(deltas) / scale)
    assert found.flags == ()
    assert found.p == pytest.approx(p, rel=1e-3)
    if interval is not None:
        assert (found.ci_low, found.ci_high) == pytest.approx(interval, abs=5e-4)


def test_worked_equivalence_p():
    same = [0.1, -0.2, 0.05, 0.15, -0.1]
    assert verdict(same, margin=0.5).tost_p == pytest.approx(0.000777, abs=1e-6)
    assert verdict(same, "equivalent", margin=0.2).tost_p == pytest.approx(0.018685, abs=1e-6)
    assert verdict([1.2, 1.5, 0.9, 1.4, 1.1], "equivalent", margin=0.5).tost_p == pytest.approx(0.99874, abs=1e-5)
    assert verdict([0.4, 0.5, 0.3, 0.6, 0.45], margin=1.0).tost_p == pytest.approx(0.000194, abs=1e-6)


def test_eight_seeds_in_a_family_of_five_take_the_t_test():
    others = [(claim(name=f"O{k}"), paired([0.1, -0.1, 0.02])) for k in range(4)]
    found = judge([(claim(), paired(EIGHT)), *others])[0]
    assert (found.test, found.family_size, found.verdict) == ("paired t", 5, "better")
    assert found.p == pytest.approx(0.005365, abs=1e-6)
    assert found.p_adjusted == pytest.approx(0.026826, abs=5e-6)
    assert found.ci_bonferroni_low < found.ci_low  # type: ignore[operator]
    assert "Holm 0.0268 of 5" in found.sentence


# --- edge cases ------------------------------------------------------------------------------------------------


def test_identical_results_are_a_sign_that_the_arms_do_not_differ():
    found = verdict([0, 0, 0])
    assert (found.verdict, found.words, found.p) == ("undecided", "undecided: identical results", None)
    assert found.flags == ("check_arms_differ",)
    assert (found.k_agree, found.descriptive) == (0, {})


def test_equal_deltas_have_no_t():
    four = verdict([0.5] * 4)
    assert four.words.startswith("undecided: needs about 2 more seeds (degenerate, sign-flip p = 0.1250")
    assert (four.p, four.flags, four.effect_dz, four.ci_low) == (0.125, ("degenerate",), None, None)
    assert four.delta_sd == 0.0
    shared = judge([(claim(), paired([0.5] * 4)), (claim(name="H2"), paired([]))])[0]  # 2^(1 - 7) is below .05 / 2
    assert shared.words.startswith("undecided: needs about 3 more seeds (degenerate, sign-flip p = 0.1250")
    six = verdict([0.5] * 6)
    assert (six.verdict, six.p) == ("better", 0.03125)
    equal = verdict([0.5] * 6, "equivalent", margin=0.6)
    assert (equal.words, equal.tost_p) == ("better, by more or less than the margin: open", None)
    assert equal.sentence.endswith("equal deltas have no noise to hold against the margin (degenerate)")
    assert verdict([0.5] * 6, "not_worse", margin=0.6).words.endswith("to hold against the margin (degenerate)")
    assert verdict([0.5] * 4, "equivalent", margin=0.6).words.endswith("to hold against the margin (degenerate)")
    assert verdict([0.5] * 6, "not_worse", margin=0.6).test is None  # a sign-flip test knows no margin
    against = "undecided: the sign is against the claim (degenerate, sign-flip p = 0.1250, n = 4)"
    assert verdict([-0.5] * 4).words == verdict([0.5] * 4, "worse").words == against


def test_scores_of_either_sign_are_judged_whatever_their_rounding():
    treatment = tuple(1 + seed % 3 * 1.2e-12 for seed in range(5))
    control = tuple(-1 + seed % 2 * 1e-12 for seed in range(5))
    found = judge([(claim(), PairedSeeds(seeds=tuple(range(5)), treatment=treatment, control=control))])[0]
    assert (found.verdict, found.test) == ("better", "paired t")


def test_arms_that_do_not_vary_are_no_sample():
    found = judge([(claim(), pair(0.7, 0.6, seeds=range(10)))])[0]
    assert (found.verdict, found.p) == ("undecided", None)
    assert "neither arm varies with the seed" in found.words
    assert found.seedless
    assert not judge([(claim(), pair({0: 0.7, 1: 0.7, 2: 0.71}, 0.6))])[0].seedless
    assert not verdict([0.1]).seedless


def test_one_untrained_arm_is_fine():
    found = judge([(claim(), pair({0: 0.71, 1: 0.72, 2: 0.715, 3: 0.72}, 0.6))])[0]
    assert found.verdict == "better"
    assert found.correlation is None
    assert found.unpaired_seeds == 4
    assert judge([(claim(), pair(0.6, {0: 0.71, 1: 0.72, 2: 0.715, 3: 0.72}))])[0].correlation is None


def test_zero_and_one_seed():
    none, one = verdict([]), verdict([0.3])
    assert (none.words, none.p, none.delta_mean) == ("undecided: no complete pair", None, None)
    assert one.words == "undecided: needs at least 1 more seed (3 to estimate noise)"
    assert (one.p, one.n_seeds, one.delta_mean) == (None, 1, pytest.approx(0.3))
    assert "n = 1 seed" in one.sentence


def test_missing_runs_are_outcomes():
    survivors = pair(dict.fromkeys(range(8), 0.9), {s: 0.5 + s / 100 for s in range(10)})
    found = judge([(claim(), survivors)])[0]
    assert (found.words, found.p) == ("undecided: runs missing", None)
    assert [seed for seed, _ in found.dropped] == [8, 9]


def test_two_seeds_are_the_least_a_t_test_takes():
    found = verdict([0.2, 0.21])
    assert found.test == "paired t"
    assert (found.delta_sd, found.effect_dz) == pytest.approx((math.sqrt(0.5e-4), 0.205 / math.sqrt(0.5e-4)))
    assert (found.hedges_g, found.correlation) == (None, None)  # two points always lie on a line


def test_a_crashed_seed_is_pointed_at():
    found = verdict([0.1, 0.12, 0.09, 0.11, -3.0])
    assert "outlier: seed 4" in found.flags
    assert (found.delta_min, found.delta_max) == pytest.approx((-3.0, 0.12))
    # The median is 3, and the median distance from it 1. An outlier is more than 6 of these away.
    for last, flags in ((8.5, ()), (9.5, ("outlier: seed 4",))):
        assert verdict([2, 4, 3, 2, last]).flags == flags


def test_selected_seeds_never_confirm():
    for late in (False, True):
        pairs = paired([0.4, 0.5, 0.3, 0.6, 0.45], selected=True, exploratory=late)
        found = judge([(claim(), pairs)])[0]
        assert (found.verdict, found.words) == ("undecided", "exploratory (selected on these seeds)")
        assert found.p < 0.01  # type: ignore[operator]


# --- hypotheses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "deltas", "word", "as_expected"),
    [
        ("better", [0.4, 0.5, 0.3, 0.6], "better", True),
        ("worse", [0.4, 0.5, 0.3, 0.6], "better", False),
        ("worse", [-0.4, -0.5, -0.3, -0.6], "worse", True),
        ("better", [0.4, -0.5, 0.3, -0.6], "undecided", None),
        ("equivalent", [0.01, -0.02, 0.015, 0.0], "equivalent", True),
        ("equivalent", [0.9, 1.0, 0.95, 0.92], "better", False),
        ("equivalent", [0.1, 0.5, 0.3, 0.2], "better", False),
        ("equivalent", [0.1, -0.5, 0.3, -0.2], "undecided", None),
        ("not_worse", [0.01, -0.02, 0.015, 0.0], "not worse", True),
        ("not_worse", [0.5, 0.4, 0.45, 0.5], "not worse", True),
        ("not_worse", [-0.9, -1.0, -0.95, -0.92], "worse", False),
        ("not_worse", [0.1, -0.5, 0.3, -0.2], "undecided", None),
    ],
)
def test_hypotheses(expect, deltas, word, as_expected):
    found = verdict(deltas, expect, margin=0.2)
    assert (found.verdict, found.as_expected) == (word, as_expected)


def test_better_and_worse_are_one_two_sided_test():
    deltas = [0.4, 0.5, 0.3, 0.6]
    assert verdict(deltas, "better").p == verdict(deltas, "worse").p


def test_not_worse_is_one_sided_at_the_margin():
    deltas = np.array([0.3, 0.1, 0.2])
    found = verdict(deltas, "not_worse", margin=0.05)
    assert found.p == pytest.approx(stats.ttest_1samp(deltas, -0.05, alternative="greater").pvalue)
    assert found.test == "one-sided paired t"
    assert found.words == "not worse (margin 0.05)"
    assert (
        verdict(deltas, "not_worse", margin=0.5).words == "not worse (margin 0.5)"
    )  # inside it, which says no more
    assert verdict([-0.3, -0.1, -0.2], "not_worse", margin=0.05).verdict == "undecided"  # CI reaches above -0.05


def test_without_a_margin_nothing_is_equivalent():
    found = verdict([0.001, -0.002, 0.0015, -0.0001, 0.0])
    assert found.verdict == "undecided"
    assert found.tost_p is None
    assert found.words.endswith("if the observed effect is true")


def test_advice_for_equivalence_uses_the_power_of_equivalence():
    """A margin of one sd needs 11 seeds, 7 more than 4."""
    d = np.array([1.0, -1.0, 1.0, -1.0])
    found = verdict(d / d.std(ddof=1), "equivalent", margin=1.0)
    assert found.k_more == 7
    assert found.words.startswith("undecided: needs about 7 more seeds (up to ")


# --- items -----------------------------------------------------------------------------------------------------


def test_items_widen_the_claim_to_the_task():
    pairs = mean_items(5, 400, seed_sd=0.01, item_sd=0.3, noise=0.1, effect=0.1)
    found = judge([(claim(), pairs)])[0]
    d = pairs.deltas
    assert pairs.items is not None
    over_seeds = (pairs.items.treatment - pairs.items.control).mean(0)
    v = np.array([d.var(ddof=1) / 5, over_seeds.var(ddof=1) / 400])
    assert found.v_both is not None
    variance = v.sum() - found.v_both
    half = (variance / v.sum() * (v @ stats.t.ppf(0.975, [4, 399]) ** 2)) ** 0.5
    assert found.test == "crossed t"
    assert found.scope == "on the task"
    assert (found.v_seed, found.v_item, found.df, found.df_items) == pytest.approx((v[0], v[1], 4, 399))
    assert (found.ci_low, found.ci_high) == pytest.approx((d.mean() - half, d.mean() + half))
    assert found.two_level_low < found.delta_mean < found.two_level_high  # type: ignore[operator]


def test_a_claim_about_these_items_does_not_sample_them():
    pairs = mean_items(8, 100, seed_sd=0.01, item_sd=0.3, noise=0.05, effect=0.06)
    found = judge([(claim(scope="test_set"), pairs)])[0]
    assert (found.test, found.scope) == ("exact sign-flip", "on this test set")
    assert found.v_item is not None
    open_ = mean_items(5, 100, seed_sd=0.02, item_sd=0.3, noise=0.05, effect=0.02, seed=2)
    of_set = [judge([(claim(scope="test_set"), replace(open_, items=one))])[0] for one in (open_.items, None)]
    assert of_set[0].k_more == of_set[1].k_more is not None
    assert (
        judge([(claim(), open_)])[0].words == "undecided: more seeds cannot settle this: the test set is too small"
    )


def test_seed_robust_but_item_fragile_is_said():
    pairs = mean_items(8, 60, seed_sd=0.002, item_sd=0.5, noise=0.01, effect=0.05, seed=3)
    found = judge([(claim(), pairs)])[0]
    assert found.p_seeds_alone <= 0.05 < found.p_crossed  # type: ignore[operator]
    assert found.verdict == "undecided"
    assert "seed-robust but item-fragile" in found.flags
    assert "seed-robust but item-fragile" in found.words
    only_these = judge([(claim(scope="test_set"), pairs)])[0]
    assert only_these.words == "better; seed-robust but item-fragile"


def test_item_robust_but_seed_fragile_is_said():
    pairs = mean_items(4, 5_000, seed_sd=0.08, item_sd=0.02, noise=0.02, effect=0.05, seed=1)
    found = judge([(claim(), pairs)])[0]
    assert found.p_items_alone < 0.05 < found.p_seeds_alone  # type: ignore[operator]
    assert "item-robust but seed-fragile" in found.flags
    assert "item-robust but seed-fragile" in found.sentence


def test_more_seeds_cannot_replace_items():
    pairs = mean_items(6, 50, seed_sd=0.001, item_sd=0.5, noise=0.01, effect=0.0, seed=2)
    assert "the test set is too small" in judge([(claim(min_effect=0.05), pairs)])[0].words


def test_untrained_arms_can_be_compared_on_items():
    rng = np.random.default_rng(0)
    row = rng.normal(size=(1, 300))
    pairs = with_items(np.repeat(row + rng.normal(0.3, 1, size=(1, 300)), 3, 0), np.repeat(row, 3, 0))
    found = judge([(claim(), pairs)])[0]
    assert (found.test, found.v_seed, found.df_items) == ("crossed t", 0.0, 299)
    assert found.p == pytest.approx(stats.ttest_rel(pairs.items.treatment[0], pairs.items.control[0]).pvalue)  # type: ignore[union-attr]


def test_more_seeds_of_untrained_arms_are_no_help():
    rng = np.random.default_rng(0)
    control = np.repeat(rng.normal(size=(1, 300)), 3, 0)
    pairs = with_items(control + rng.normal(0.02, 1, size=(1, 300)), control)
    assert "more seeds cannot settle this" in judge([(claim(min_effect=1.0), pairs)])[0].words


@pytest.mark.parametrize("kind", ["spearman", "pearson", "auc", "balanced_accuracy", "f1"])
def test_every_metric_with_items_gets_a_crossed_t(kind: str):
    rng = np.random.default_rng(1)
    gold = rng.normal(size=600)
    treatment, control = gold + 0.7 * rng.normal(size=(4, 600)), gold + 2 * rng.normal(size=(4, 600))
    gold = gold if kind in ("spearman", "pearson") else (gold > 0).astype(float)
    found = judge([(claim(), with_items(treatment, control, kind, gold))])[0]
    assert (found.test, found.verdict) == ("crossed t", "better")
    assert found.v_item_method == ("analytic" if kind == "balanced_accuracy" else "bootstrap")
    assert found.n_items == 600


@pytest.mark.parametrize("scale", [1.0, 1e-9, 3e7])
@pytest.mark.parametrize("gain", [0.1, 0.125])
def test_item_variance_that_is_rounding_is_none(gain: float, scale: float):
    """Every item gains as much: sums of .1 differ in their last digits, those of 1/8 do not."""
    control = np.random.default_rng(3).integers(0, 64, (2, 50)) / 64
    treatment, control = scale * (control + gain), scale * control
    found = judge([(claim(), with_items(treatment, control))])[0]
    assert (found.words, found.flags) == (
        "undecided: needs about 4 more seeds (degenerate, sign-flip p = 0.5000, n = 2)",
        ("degenerate",),
    )
    assert (found.v_item, found.v_both) == (0.0, 0.0)


def test_items_that_do_not_add_up_to_the_score_are_an_error():
    pairs = mean_items(3, 50, seed_sd=0.01, item_sd=0.1, noise=0.1)
    wrong = replace(pairs, control=tuple(value + 0.01 for value in pairs.control))
    with pytest.raises(ValueError, match="its items give"):
        judge([(claim(), wrong)])


def test_one_run_with_items_is_tested_as_one_run():
    rng = np.random.default_rng(0)
    right = [(rng.uniform(size=(1, 200)) < rate).astype(float) for rate in (0.8, 0.6)]
    found = judge([(claim(), with_items(*right))])[0]
    assert (found.verdict, found.p) == ("undecided", None)
    assert found.single_run["test"] == "McNemar's test"  # type: ignore[index]
    assert "this single run: McNemar's test, p" in found.sentence
    lacking = tuple((seed, "control: no finished run") for seed in (2, 3))
    of_two = replace(with_items(*(np.repeat(arm, 2, 0) for arm in right)), dropped=lacking)
    assert "runs missing" in judge([(claim(), of_two)])[0].words
    assert judge([(claim(), of_two)])[0].single_run is None


def test_correlations_carry_the_test_of_each_run():
    """As papers with one run print them: Steiger's Z for each seed, which decides nothing."""
    rng = np.random.default_rng(3)
    gold = rng.normal(size=46)
    rows = [gold + noise * rng.normal(size=(4, 46)) for noise in (0.5, 2.0)]
    found = judge([(claim(), with_items(*rows, "spearman", gold))])[0]
    assert found.test == "crossed t"
    assert [run["test"] for run in found.each_run] == ["Steiger's Z (approximate for ranks)"] * 4
    r = stats.spearmanr(np.stack([rows[0][2], rows[1][2], gold]), axis=1).statistic
    third = steiger(r[0, 2], r[1, 2], r[0, 1], 46, ranks=True)
    assert (found.each_run[2]["statistic"], found.each_run[2]["p"]) == pytest.approx((third.statistic, third.p))
    swapped = judge([(claim(), with_items(*rows[::-1], "spearman", gold))])[0]
    assert [run["statistic"] for run in swapped.each_run] == pytest.approx(
        [-run["statistic"] for run in found.each_run]
    )
    assert judge([(claim(), mean_items(3, 50, seed_sd=0.01, item_sd=0.1, noise=0.1))])[0].each_run == ()


def test_a_class_too_small_to_sample_is_refused():
    gold = np.array([1.0] + [0.0] * 30)
    rng = np.random.default_rng(0)
    found = judge([(claim(), with_items(rng.normal(size=(3, 31)), rng.normal(size=(3, 31)), "auc", gold))])[0]
    assert found.words == "undecided: independent items labelled 1: 1, auc needs at least 2"


def test_aligned_items_feed_a_verdict():
    rng = np.random.default_rng(3)
    runs = {arm: {s: dict(zip("abcdefghij", rng.uniform(size=10), strict=True)) for s in range(4)} for arm in "AB"}
    items = align_items(range(4), runs["A"], runs["B"], aggregate="mean")
    means = [{s: float(np.mean(list(row.values()))) for s, row in runs[arm].items()} for arm in "AB"]
    found = judge([(claim(), replace(pair(*means), items=items))])[0]
    assert found.test == "crossed t"


# --- signal isolation ------------------------------------------------------------------------------------------


def isolated(against_control: list[float], against_matched: list[float], **more: object) -> Verdict:
    pairs = paired(against_control)
    matched = tuple(t - d for t, d in zip(pairs.treatment, against_matched, strict=True))
    declared = claim(matched_control="C", signal="hard negatives", **more)
    return judge([(declared, replace(pairs, matched_control=matched))])[0]


def test_a_gain_is_due_to_the_signal_only_if_both_hold():
    both = isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3])
    assert both.words == "better than B, due to hard negatives"
    assert both.signal_p == pytest.approx(max(both.p, stats.ttest_1samp([0.3, 0.4, 0.2, 0.5, 0.3], 0).pvalue))
    assert both.share == pytest.approx(0.34 / 0.45)
    assert both.share_low < both.share < both.share_high  # type: ignore[operator]
    only = isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.1, -0.2, 0.1, 0.0, 0.05])
    assert only.words == "better than B, not shown to be due to hard negatives"
    assert "A is better than B on score, not shown to be due to hard negatives" in only.sentence
    assert (both.as_expected, only.verdict, only.as_expected) == (True, "better", None)


def test_a_gain_the_matched_control_surpasses_is_not_due_to_the_signal():
    found = isolated([0.4, 0.5, 0.3, 0.6, 0.45], [-0.4, -0.5, -0.3, -0.6, -0.4])
    assert "not shown" in found.words
    assert found.as_expected is False
    assert found.signal_delta == pytest.approx(-0.44)


def test_no_share_of_a_gain_that_may_be_zero():
    assert isolated([0.4, -0.5, 0.3, -0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3]).share is None


def test_share_with_items_draws_both_comparisons_alike():
    pairs = mean_items(5, 200, seed_sd=0.01, item_sd=0.05, noise=0.05, effect=0.2)
    assert pairs.items is not None
    halfway = (pairs.items.treatment + pairs.items.control) / 2
    pairs = replace(
        pairs,
        matched_control=tuple(float(value) for value in halfway.mean(1)),
        matched_items=replace(pairs.items, control=halfway),
    )
    declared = claim(matched_control="C", signal="roles")
    found = judge([(declared, pairs)])[0]
    assert (found.share, found.share_low, found.share_high) == pytest.approx((0.5, 0.5, 0.5))
    other = tuple(f"other {name}" for name in pairs.items.item_ids)
    for renamed in ({"item_ids": other}, {"group_ids": other}):
        with pytest.raises(ItemsError, match="scored on other items"):
            judge([(declared, replace(pairs, matched_items=replace(pairs.items, control=halfway, **renamed)))])
    no_scores = replace(pairs, matched_control=None, matched_items=None)
    with pytest.raises(ValueError, match="claim H1: no scores of the matched control C"):
        judge([(declared, no_scores)])


@pytest.mark.parametrize("tasks", [1, 2])
def test_share_is_as_uncertain_as_a_bootstrap_over_seeds_and_items(tasks: int):
    """Of one task, or of the mean over two tasks, whose items are drawn apart."""
    rng = np.random.default_rng(5)
    gain, rest = (mean + rng.normal(0, 0.3, 120) + rng.normal(0, 0.1, (5, 120)) for mean in (0.4, 0.2))
    parts = []
    for place in np.split(np.arange(120), tasks):
        ids = tuple(map(str, place))
        one = {"treatment": gain[:, place], "control": 0 * gain[:, place], "item_ids": ids, "group_ids": ids}
        parts.append(ItemScores(aggregate="mean", **one))
    matched = [replace(one, control=(gain - rest)[:, [int(name) for name in one.item_ids]]) for one in parts]
    of_tasks = [ItemSum(tuple((1 / tasks, one) for one in each)) for each in (parts, matched)]
    items, matched_items = (parts[0], matched[0]) if tasks == 1 else of_tasks
    pairs = PairedSeeds(
        seeds=tuple(range(5)),
        treatment=tuple(gain.mean(1)),
        control=(0.0,) * 5,
        items=items,
        matched_control=tuple((gain - rest).mean(1)),
        matched_items=matched_items,
    )
    found = judge([(claim(matched_control="C", signal="roles"), pairs)])[0]
    size = 120 // tasks
    of_items = np.hstack([rng.multinomial(size, np.full(size, 1 / size), 20_000) for _ in range(tasks)])
    of_seeds = rng.multinomial(5, np.full(5, 0.2), 20_000)
    above, below = (np.einsum("bn,nm,bm->b", of_seeds, one, of_items, optimize=True) for one in (rest, gain))
    low, high = np.quantile(above / below, [0.025, 0.975])
    assert found.share == pytest.approx(rest.mean() / gain.mean())
    assert (found.share_low, found.share_high) == pytest.approx((low, high), abs=0.06 * (high - low))
    bare, half = (replace(pairs, items=one, matched_items=None) for one in (None, items))  # then over seeds alone
    by_seed, same = (judge([(claim(matched_control="C", signal="roles"), one)])[0] for one in (bare, half))
    assert (by_seed.share_low, by_seed.share_high) == (same.share_low, same.share_high)
    assert by_seed.share_high - by_seed.share_low < found.share_high - found.share_low  # type: ignore[operator]


# --- families --------------------------------------------------------------------------------------------------


def test_a_family_can_keep_a_claim_back():
    weak = [(claim(name=f"W{k}"), paired([0.1, -0.1, 0.02, 0.05])) for k in range(3)]
    found = judge([(claim(), paired([0.8, 1.1, 0.6])), *weak])[0]
    assert found.verdict == "undecided"
    assert found.ci_low > 0  # type: ignore[operator]
    assert "the correction over 4 claims keeps it back" in found.words


@pytest.mark.parametrize(("method", "late"), [("holm", False), ("fdr_bh", True)])
def test_a_family_is_corrected_as_statsmodels_does(method: str, late: bool):
    rng = np.random.default_rng(7)
    pairs = [paired(rng.normal(mean, 0.5, 4), exploratory=late) for mean in (0.3, 1.5, 0.0, 0.9, 0.6)]
    found = judge([(claim(name=f"H{k}"), one) for k, one in enumerate(pairs)])
    p = [stats.ttest_1samp(one.deltas, 0).pvalue for one in pairs]
    assert [one.p for one in found] == pytest.approx(p)
    assert [one.p_adjusted for one in found] == pytest.approx(multipletests(p, method=method)[1])


def test_failed_claims_count_and_make_the_family_incomplete():
    found = judge([(claim(), paired([0.8, 1.1, 0.6])), (claim(name="H2"), paired([]))])
    assert found[0].p_adjusted == pytest.approx(2 * 0.02908, rel=1e-3)
    assert found[0].words.endswith("(family incomplete: 1 of 2)")
    assert found[1].p_adjusted is None


def test_difference_and_equivalence_of_one_claim_count_once():
    assert verdict([0.4, 0.5, 0.3, 0.6], margin=0.5).p_adjusted == verdict([0.4, 0.5, 0.3, 0.6]).p_adjusted


def test_claims_added_later_form_their_own_family():
    late = (claim(name="late"), paired([0.8, 1.1, 0.6], exploratory=True))
    found = judge([late, (claim(), paired([0.8, 1.1, 0.6]))])
    assert [v.family_size for v in found] == [1, 1]
    assert (
        found[0].words == "better (exploratory: declared, or its seeds or rows changed, after results were seen)"
    )
    assert found[1].words == "better"
    assert "Benjamini-Hochberg" in found[0].sentence


@pytest.mark.parametrize(("expect", "declared"), [("better", {"margin": 5.0}), ("not_worse", {"margin": 0.7})])
def test_a_claim_that_was_added_alone_is_corrected_for_itself_alone(expect, declared):
    deltas = [0.8, 1.1, 0.3, 0.1]
    found = judge([(claim(expect, **declared), paired(deltas, exploratory=True))])[0]
    assert (found.p_adjusted, found.tost_p_adjusted) == (found.p, found.tost_p)


def test_the_declaration_has_a_digest():
    first = family_digest([claim(), claim(name="H2")])
    assert first == family_digest([claim(), claim(name="H2")])
    rules = (None, Sequential(), Sequential(n_max=30), Sequential(tau2=1.0))
    assert len({first, *(family_digest([claim()], sequential=one) for one in rules)}) == 5
    assert judge([(claim(), paired([0.1, 0.2])), (claim(name="H2"), paired([]))])[0].family_digest == first


def test_a_margin_and_a_matched_control_count_twice():
    """One delta of the margin from the control, none from the matched one: neither equivalent nor due to it."""
    both = isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3], margin=2.0)
    assert both.family_size == 2
    assert both.p_adjusted == pytest.approx(2 * both.p)  # type: ignore[operator]
    assert isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3]).family_size == 1
    plain = judge([(claim(margin=0.5), paired([0.1, 0.2, 0.15])), (claim(name="H2"), paired([0.1, 0.2, 0.1]))])
    assert [found.family_size for found in plain] == [2, 2]


def test_groups_of_claims_are_corrected_apart():
    weak = [(claim(name=f"W{k}", family="calibration"), paired([0.1, -0.1, 0.02, 0.05])) for k in range(3)]
    ranking = (claim(family="ranking"), paired([0.8, 1.1, 0.6]))
    rest = (claim(name="R"), paired([0.8, 1.1, 0.6]))
    found = judge([weak[0], ranking, *weak[1:], rest])
    assert [(v.group, v.family_size) for v in found] == [
        ("calibration", 3), ("ranking", 1), ("calibration", 3), ("calibration", 3), ("", 1),
    ]  # fmt: skip
    assert found[1].verdict == found[4].verdict == "better"
    assert len({v.family_digest for v in found}) == 3
    late = [(claim(name=f"L{k}", family=k), paired([0.8, 1.1, 0.6], exploratory=True)) for k in "ab"]
    assert [(v.group, v.family_size) for v in judge([*late, ranking])] == [("a", 2), ("b", 2), ("ranking", 1)]


def test_withdrawn_claims_count_as_ever_in_their_own_group():
    """.0291 is below the level, and three times it is not."""
    weak = [0.8, 1.1, 0.6]
    declared = [
        (claim(family="ranking"), paired(weak)),
        (claim(name="H2"), paired(weak)),
        (claim(name="H3"), paired(weak, exploratory=True)),
    ]
    found = judge(declared, withdrawn={"ranking": 2})
    assert [(v.verdict, v.family_size) for v in found] == [("undecided", 3), ("better", 1), ("better", 1)]
    assert found[0].p_adjusted == pytest.approx(3 * found[0].p)  # type: ignore[operator]
    told = " (2 of the 3 hypotheses it is corrected with were withdrawn)"
    assert [told in v.words for v in found] == [told in v.sentence for v in found] == [True, False, False]
    both = judge(declared, withdrawn={None: 1, "ranking": 2})
    assert [v.family_size for v in both] == [3, 2, 1]  # an exploratory claim is of no group


# --- one question, one answer ----------------------------------------------------------------------------------

LOSS = [-0.03, -0.005, -0.02, -0.012, -0.025, -0.01, -0.022, -0.015]  # mean -0.0174


def test_a_shown_difference_is_never_undecided():
    """The loss is shown, that it is within .012 is not, and whether it exceeds .012 is what is left open."""
    pairs = paired(LOSS)
    found = judge([(claim("equivalent", margin=0.012), pairs)])[0]
    assert (found.verdict, found.as_expected) == ("worse", False)
    assert found.words == "worse, by more or less than the margin: open"
    tost = stats.ttest_1samp(LOSS, -0.012, alternative="greater").pvalue
    assert f"difference p = 0.0078 (Holm 0.0078 of 1), TOST p = {tost:.4f} (" in found.sentence
    assert "; whether the loss exceeds 0.012 is open: needs about " in found.sentence
    assert found.p is not None
    assert found.p < 0.05 < found.tost_p  # type: ignore[operator]
    far = judge([(claim("equivalent", margin=0.005), pairs)])[0]
    assert far.words == "worse, beyond the margin"
    near = judge([(claim("equivalent", margin=0.03), pairs)])[0]
    assert near.words == "equivalent within ±0.03, though not zero"
    assert "TOST p" in near.sentence
    assert "difference p" not in near.sentence


@pytest.mark.parametrize("expect", ["better", "worse", "equivalent", "not_worse"])
def test_word_p_and_advice_answer_one_question(expect: str):
    """Over many claims of all sizes: no word against its p or its sign, no seeds promised that could not help."""
    rng = np.random.default_rng(13)
    told: set[str] = set()
    for _ in range(120):
        n, margin = int(rng.integers(2, 9)), float(rng.choice([0.005, 0.01, 0.03, 0.2]))
        effect, sd = float(rng.choice([0, 0.005, 0.02, -0.02, 0.1, -0.1])), float(rng.choice([1e-4, 0.005, 0.03]))
        if rng.random() < 0.5:
            noise, m = float(rng.choice([1e-6, 0.05])), int(rng.choice([3, 20, 200]))
            pairs = mean_items(
                n, m, seed_sd=sd, item_sd=0.1, noise=noise, effect=effect, seed=int(rng.integers(99))
            )
        else:
            pairs = paired(rng.normal(effect, sd, n))
        wanted = expect in ("equivalent", "not_worse") or rng.random() < 0.3
        found = judge([(claim(expect, **({"margin": margin} if wanted else {})), pairs)])[0]
        delta, seeds_help = found.delta_mean, "more seeds (" in found.words or " more seed " in found.words
        told.add(found.verdict)
        assert delta is not None
        if found.verdict in ("better", "worse"):
            assert (delta > 0) == (found.verdict == "better")
            assert expect == "not_worse" or (found.p_adjusted or 0.0) < 0.05
        if found.verdict == "equivalent":
            assert abs(delta) < margin
            assert (found.tost_p_adjusted or 0.0) < 0.05
        if found.verdict == "not worse":
            assert delta > -margin
        if found.verdict == "undecided":
            shown = found.ci_low is not None and (found.ci_low > 0 or found.ci_high < 0)
            assert expect == "not_worse" or not shown, found.sentence
            against = {"better": delta < 0, "worse": delta > 0, "not_worse": delta <= -margin}
            assert not (seeds_help and against.get(expect, abs(delta) >= margin)), found.sentence
    assert {"undecided", "worse", "better"} <= told | ({"better"} if expect == "not_worse" else set())


def test_seeds_that_tell_on_which_side_of_the_margin_a_loss_lies():
    """Beyond it they are those of the distance alone, tested as a difference; within it those of equivalence, whose
    far side is never in doubt: ((1.645 + .842) / (.002625 / .008348))² + 1.4 = 64 seeds, and 8 are there."""
    beyond, distance = (verdict(LOSS, "equivalent", margin=0.012), verdict(np.array(LOSS) + 0.012, "worse"))
    assert distance.words == "undecided: needs about 13 more seeds (up to 29) if the observed effect is true"
    assert beyond.advice == distance.words.replace("undecided", "whether the loss exceeds 0.012 is open")
    assert (beyond.k_more, beyond.k_more_upper) == (distance.k_more, distance.k_more_upper) == (13, 29)
    assert verdict(LOSS, "equivalent", margin=0.02).k_more == 64 - 8
    near = verdict([-loss for loss in LOSS], "equivalent", margin=0.017)
    side, hope = "whether the gain exceeds 0.017 is open", "if the observed effect is true"
    assert (near.advice, near.k_more) == (f"{side}: needs more than 200 more seeds {hope}", None)
    at = PairedSeeds(seeds=(0, 1, 2), treatment=(1.5, 2.0, 2.5), control=(0.0,) * 3)
    assert judge([(claim("equivalent", margin=2.0), at)])[0].advice == "whether the gain exceeds 2.0 is open"


def test_items_may_be_what_leaves_the_margin_open():
    pairs = mean_items(8, 300, seed_sd=0.001, item_sd=0.1, noise=0.01, effect=-0.02)
    found = judge([(claim("equivalent", margin=0.015), pairs)])[0]
    assert found.words.startswith("worse, by more or less than the margin: open")
    assert found.sentence.endswith("whether the loss exceeds 0.015 is open: the 300 items limit it, not the seeds")


@pytest.mark.parametrize(
    ("expect", "deltas", "declared", "advice"),
    [
        ("better", [-0.1, 0.05, -0.12], {}, "the sign is against the claim"),
        ("worse", [0.1, -0.05, 0.12], {}, "the sign is against the claim"),
        ("better", [-0.1, 0.05, -0.12], {"min_effect": 0.1}, "the sign is against the claim"),
        ("better", [-0.1, 0.1], {}, "the observed difference is zero"),
        ("worse", [-0.1, 0.1], {}, "the observed difference is zero"),
        ("equivalent", [0.1, -0.2, 0.5], {"margin": 0.05}, "the estimate lies outside the margin: more seeds would sooner show a difference"),
        ("not_worse", [0.1, -0.2, -0.5], {"margin": 0.05}, "the estimate lies outside the margin: more seeds would sooner show a difference"),
        ("not_worse", [0.3, -0.2, 0.1], {"margin": 0.05}, "needs about 28 more seeds (up to 128) if the observed effect is true"),
        ("not_worse", [0.3, -0.2, 0.1], {"margin": 0.001}, "needs about 84 more seeds (up to more than 200) if the observed effect is true"),
    ],
)  # fmt: skip
def test_advice_never_promises_what_the_estimate_denies(expect, deltas, declared, advice):
    """The last two: room .05 + .0667 of sd .2517, so ((1.645 + .842) / .4636)² + 1.4 = 30.2 seeds, and 3 are there;
    room .001 + .0667, so ((1.645 + .842) / .2688)² + 1.4 = 87.0, and at 2.1 times the sd more than 200."""
    found = verdict(deltas, expect, **declared)
    assert found.words == f"undecided: {advice}"
    assert (found.k_more is None) == ("more seeds (" not in advice)


def test_a_loss_that_is_shown_is_told_with_its_own_p():
    found = verdict([-0.9, -1.0, -0.95, -0.92], "not_worse", margin=0.2)
    assert "worse p < 0.0001" in found.sentence.replace("p <0", "p < 0")
    assert found.worse_p == pytest.approx(
        2 * stats.ttest_1samp([-0.9, -1.0, -0.95, -0.92], -0.2, alternative="less").pvalue
    )


def test_deltas_of_any_size_are_judged():
    for scale in (1e-200, 1e200):
        for sequential in (None, Sequential()):
            small, large = (
                judge(
                    [
                        (
                            claim(),
                            PairedSeeds(
                                seeds=tuple(range(12)),
                                treatment=tuple(size * x for x in DELTAS),
                                control=(0.0,) * 12,
                            ),
                        )
                    ],
                    sequential=sequential,
                )[0]
                for size in (1.0, scale)
            )
            assert (small.verdict, small.test, small.words) == (large.verdict, large.test, large.words)
            assert large.p == pytest.approx(small.p)
            assert large.effect_dz == pytest.approx(small.effect_dz)
            assert large.delta_sd == pytest.approx(scale * small.delta_sd)
            assert large.ci_low == pytest.approx(scale * small.ci_low)
            json.dumps(large.to_dict(), allow_nan=False)


# --- growing seeds ---------------------------------------------------------------------------------------------


def grown(deltas: list[float] | np.ndarray, expect: str = "better", **declared: object) -> Verdict:
    return judge([(claim(expect, **declared), paired(deltas))], sequential=Sequential())[0]


def test_sequential_verdicts():
    rng = np.random.default_rng(0)
    strong = grown(rng.normal(2, 0.5, size=8))
    assert (strong.verdict, strong.test, strong.scope) == ("better", "t e-process", "on this test set")
    assert strong.p == pytest.approx(min(1, 1 / max(strong.e_values)))
    assert len(strong.e_values) == 8
    assert strong.cs_low > 0  # type: ignore[operator]
    assert grown(-rng.normal(2, 0.5, size=8)).verdict == "worse"
    assert grown(rng.normal(0, 0.05, size=10), "equivalent", margin=0.3).verdict == "equivalent"
    assert grown(rng.normal(0, 0.05, size=10), margin=0.3).words == "equivalent within ±0.3"


def test_sequential_does_not_stop_where_a_fixed_test_would():
    deltas = [0.8, 1.1, 0.6]
    assert verdict(deltas).verdict == "better"
    early = grown(deltas)
    assert early.verdict == "undecided"
    assert early.ci_low is None  # three seeds give no interval at any time
    assert early.k_more is not None


def seeds_crossing(room: float, variance: float) -> int:
    """n seeds of mean `room` have t² = n room² / s², and E_n = r^(-1/2) [(1 + t²/(n-1)) / (1 + t²/((n-1) r))]^(n/2)
    with r = 1 + 2n, which crosses 1 / .05."""
    x = {n: n * room**2 / variance / (n - 1) for n in range(2, 60)}
    e = {n: (1 + 2 * n) ** -0.5 * ((1 + x[n]) / (1 + x[n] / (1 + 2 * n))) ** (n / 2) for n in x}
    return next(n for n in e if e[n] >= 20)


@pytest.mark.parametrize(
    ("expect", "declared", "room"),
    [
        ("equivalent", {"margin": 0.3}, 0.25),
        ("not_worse", {"margin": 0.15}, 0.2),
        ("better", {"min_effect": 0.3}, 0.3),
        ("better", {"margin": 0.25}, 0.25),
        ("better", {"margin": 0.25, "min_effect": 0.2}, 0.2),
    ],
)
def test_sequential_needs_the_seeds_at_which_the_e_process_crosses(expect, declared, room):
    """The mean is .05, the nearest mean to be excluded lies `room` away."""
    deltas = [0.1, -0.1, 0.25, -0.05]
    variance = float(np.var(deltas, ddof=1))
    upper = variance * 3 / stats.chi2.ppf(0.2, 3)  # its upper 80 % limit
    found = judge([(claim(expect, **declared), paired(deltas))], sequential=Sequential(n_max=60))[0]
    assert (found.k_more, found.k_more_upper) == (
        seeds_crossing(room, variance) - 4,
        seeds_crossing(room, upper) - 4,
    )


def test_a_maximum_that_may_not_be_enough_is_named():
    deltas = [0.1, -0.3, 0.25, -0.15]
    variance = float(np.var(deltas, ddof=1))
    assert seeds_crossing(0.3, variance) == 4 + 7
    assert seeds_crossing(0.3, variance * 3 / stats.chi2.ppf(0.2, 3)) > 20
    near = grown(deltas, "worse", margin=0.5, min_effect=0.3)
    assert near.words == "undecided: needs about 7 more seeds (or more than the declared maximum of 20 allows)"


def test_sequential_ends_at_its_maximum():
    rng = np.random.default_rng(1)
    found = grown(rng.normal(0, 1, size=20))
    assert found.words == "undecided: the declared maximum of 20 seeds is reached"
    gain = rng.normal(1, 0.3, size=20)
    for n, told in ((19, "of 20 seeds may not settle this"), (20, "of 20 seeds is reached")):
        open_ = grown(gain[:n], "equivalent", margin=1.0)
        assert open_.verdict == "better"
        assert open_.advice == f"whether the gain exceeds 1.0 is open: the declared maximum {told}"


def test_sequential_says_when_seeds_contradict_each_other():
    """Shown at seven seeds, and then the other way round: neither is what the deltas say."""
    deltas = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0]
    assert grown(deltas).verdict == "better"
    for expect, declared in (("better", {}), ("equivalent", {"margin": 0.15}), ("not_worse", {"margin": 0.15})):
        found = grown([*deltas, *[-1.0, -1.01, -0.99] * 4], expect, **declared)
        assert found.words.startswith("undecided: later seeds contradict earlier ones")
        assert (found.p, found.p_adjusted, found.tost_p, found.ci_low) == (None, None, None, None)


def test_sequential_never_stops_on_equal_deltas():
    """Nor where a fixed number of seeds would, six by their signs: then a seventh could take the verdict back."""
    assert verdict([0.5] * 6).verdict == "better"
    for n in (5, 6, 12):
        found = grown([0.5] * n)
        assert (found.verdict, found.flags) == ("undecided", ("degenerate",))
        assert (found.test, found.p) == ("t e-process", 1.0)
        assert "seeds are added until some differ" in found.words


def test_equal_deltas_show_nothing_after_the_first_that_differs():
    """Of scores near 60, a gain of .001 at seven seeds has a spread: that of their rounding."""
    control = (61.3, 68.7, 60.1, 65.9, 62.4, 67.2, 60.6, 61.1)
    treatment = (*(score + 0.001 for score in control[:7]), control[7] + 0.3)
    pairs = PairedSeeds(seeds=tuple(range(8)), treatment=treatment, control=control)
    found = judge([(claim(), pairs)], sequential=Sequential())[0]
    assert found.e_values[:7] == (1.0,) * 7
    assert found.verdict == "undecided"


@pytest.mark.parametrize("sequential", [None, Sequential()])
def test_who_asks_for_one_claim_is_told_what_all_are_told(sequential: Sequential | None):
    """Of the others only the p values are computed, by a shorter way."""
    items = mean_items(5, 60, seed_sd=0.02, item_sd=0.2, noise=0.05, effect=0.12)
    assert items.items is not None
    lower = replace(items.items, control=items.items.control - 0.05)
    matched = replace(items, matched_control=tuple(lower.control.mean(1)), matched_items=lower)
    row = np.random.default_rng(0).normal(size=(2, 1, 60))
    family = [
        (claim(name="items"), items),
        (claim("equivalent", name="same", margin=0.5), items),
        (claim("not_worse", name="set", margin=0.1, scope="test_set"), items),
        (claim(name="due", matched_control="C", signal="roles"), matched),
        (claim(name="frozen"), with_items(*np.repeat(row, 3, 1))),
        (claim(name="seeds"), paired([0.8, 1.1, 0.6, 0.9])),
        (
            Joint(claim="both", all=(claim(name="one"), replace(claim(name="two"), metric="another"))),
            [items, items],
        ),
    ]
    told = judge(family, sequential=sequential)
    for declared, _ in family:
        names = {declared.claim, *(part.claim for part in declared.parts)}
        for name in names:
            assert judge(family, sequential=sequential, asked=name) == [one for one in told if one.claim in names]


# --- record and words ------------------------------------------------------------------------------------------


def test_the_record_rebuilds_itself_bit_for_bit():
    family = [
        (claim(margin=0.3), paired([0.1, 0.25, 0.2, 0.15, 0.3, 0.2, 0.25, 0.1, 0.12, 0.2])),
        (
            claim("equivalent", name="H2", margin=0.5),
            pair({s: 0.5 + s / 50 for s in range(19)}, {s: 0.49 + s / 49 for s in range(20)}),
        ),
    ]
    first = [json.dumps(v.to_dict(), sort_keys=True) for v in judge(family)]
    rebuilt = []
    for text in first:
        record = json.loads(text)
        declared = {
            key: record[key]
            for key in ("claim", "treatment", "control", "metric", "expect", "margin", "min_effect")
        }
        columns = {arm: tuple(row[arm] for row in record["per_seed"]) for arm in ("treatment", "control")}
        seeds = tuple(row["seed"] for row in record["per_seed"])
        dropped = tuple((seed, reason) for seed, reason in record["dropped"])
        rebuilt.append((Claim(**declared), PairedSeeds(seeds=seeds, dropped=dropped, **columns)))
    assert [json.dumps(v.to_dict(), sort_keys=True) for v in judge(rebuilt)] == first


def test_the_record_is_strict_json():
    for found in (verdict([]), verdict([0.5] * 4), grown([0.8, 1.1, 0.6]), verdict([0.1, 0.3, 0.2])):
        json.dumps(found.to_dict(), allow_nan=False)


def test_random_parts_ignore_global_state_and_are_equal_in_equal_comparisons():
    rng = np.random.default_rng(5)
    gold = rng.normal(size=60)
    pairs = with_items(gold + rng.normal(size=(3, 60)), gold + rng.normal(size=(3, 60)), "spearman", gold)
    first = judge([(claim(), pairs)])[0]
    np.random.seed(0)  # noqa: NPY002
    assert judge([(claim(), pairs)])[0].v_item == first.v_item
    other = judge([(replace(claim(), metric="another"), pairs)])[0]
    assert other.v_item != first.v_item


def test_a_name_changes_nothing_but_itself():
    rng = np.random.default_rng(5)
    gold = rng.normal(size=60)
    pairs = with_items(gold + rng.normal(size=(3, 60)), gold + rng.normal(size=(3, 60)), "spearman", gold)
    named, renamed = (judge([(claim(name=name), pairs)])[0] for name in ("H1", "H9"))
    assert replace(renamed, claim="H1", family_digest=named.family_digest) == named


def test_unpaired_seeds_say_what_pairing_saves():
    """sd of both arms 1, of the delta .1: 200 times as many unpaired seeds."""
    rng = np.random.default_rng(0)
    common, noise = rng.normal(size=30), 0.1 * rng.normal(size=30)
    pairs = PairedSeeds(seeds=tuple(range(30)), treatment=tuple(common + noise), control=tuple(common))
    found = judge([(claim(), pairs)])[0]
    assert found.correlation == pytest.approx(np.corrcoef(common + noise, common)[0, 1])
    expected = 30 * ((common + noise).var() + common.var()) / noise.var()
    assert found.unpaired_seeds == math.ceil(expected)


def test_the_record_of_a_difference_gives_every_field():
    """Also those with a default, which is for joint claims: nothing of a difference is left out unseen."""
    asked, pairs, rules = claim(), paired(EIGHT), Rules(nulls=1)
    evidence = gather(asked, pairs, rules)
    decision = decide(asked, pairs, evidence, evidence.lines, rules)
    given = record(asked, pairs, evidence, dict(evidence.lines), decision, rules)
    left = {field.name for field in fields(Verdict)} - given.keys()
    assert left == {"words", "sentence", "parts", "part_of"}


def test_interval_of_description_from_ten_seeds_on():
    rng = np.random.default_rng(0)
    assert "bca_low" not in verdict(rng.normal(size=9)).descriptive
    assert {"bca_low", "bca_high", "sign_p", "wilcoxon_p"} == set(verdict(rng.normal(size=10)).descriptive)


@pytest.mark.parametrize(("p", "word"), [(0.05003, "undecided"), (0.04997, "better")])
def test_a_p_near_the_level_says_on_which_side_it_lies(p: float, word: str):
    """At two degrees of freedom p belongs to t = √2 s / √(1 - s²), s = 1 - p; -1, 0 and 1 have an sd of 1."""
    t = math.sqrt(2) * (1 - p) / math.sqrt(1 - (1 - p) ** 2)
    found = verdict(np.array([-1.0, 0.0, 1.0]) + t / math.sqrt(3))
    assert found.verdict == word
    assert f"difference p = {p} (Holm {p} of 1)" in found.sentence
    assert said_p(0.05) == "p = 0.0500"


deltas_of_any_kind = st.lists(st.one_of(st.floats(-2, 2), st.sampled_from([0.0, 0.1, 0.5])), max_size=12)


@settings(deadline=None)
@given(deltas_of_any_kind, st.sampled_from(["better", "worse", "equivalent", "not_worse"]), st.booleans())
def test_words_a_report_may_print(deltas, expect, growing):
    found = judge([(claim(expect, margin=0.2), paired(deltas))], sequential=Sequential() if growing else None)[0]
    for said in (found.words, found.sentence):
        assert not any(word in said.lower() for word in ("significant", "trend", "marginal", "nan"))
    assert ("p =" in found.sentence or "p <" in found.sentence) <= ("n =" in found.sentence)
    if found.p is None:
        assert found.verdict == "undecided"
    json.dumps(found.to_dict(), allow_nan=False)


@settings(deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=2, max_size=18), st.booleans())
def test_swapping_the_arms_mirrors_the_verdict(values, growing):
    pairs = paired(np.array(values) / 50)
    mirrored = replace(pairs, treatment=pairs.control, control=pairs.treatment)
    sequential = Sequential() if growing else None
    a, b = (judge([(claim(margin=0.3), p)], sequential=sequential)[0] for p in (pairs, mirrored))
    assert {"better": "worse", "worse": "better"}.get(a.verdict, a.verdict) == b.verdict
    assert (a.p is None) == (b.p is None)
    if a.p is not None:
        assert a.p == pytest.approx(b.p, rel=1e-9)
        assert a.tost_p is b.tost_p is None or a.tost_p == pytest.approx(b.tost_p, rel=1e-9)
        assert a.e_values == pytest.approx(b.e_values, rel=1e-9)
        assert a.delta_mean == pytest.approx(-b.delta_mean, abs=1e-12)
    if a.ci_low is not None:
        assert (a.ci_low, a.ci_high) == pytest.approx((-b.ci_high, -b.ci_low))
    assert a.effect_dz is None or a.effect_dz == pytest.approx(-b.effect_dz)


@settings(deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=2, max_size=12), st.sampled_from([0.01, 3.0, 100.0]))
def test_units_do_not_matter(values, scale):
    pairs = paired(np.array(values) / 50)
    scaled = replace(
        pairs, treatment=tuple(scale * x for x in pairs.treatment), control=tuple(scale * x for x in pairs.control)
    )
    a, b = (judge([(claim(), p)])[0] for p in (pairs, scaled))
    assert a.verdict == b.verdict
    assert a.p == (None if b.p is None else pytest.approx(b.p, rel=1e-6))
    assert a.effect_dz == (None if b.effect_dz is None else pytest.approx(b.effect_dz, rel=1e-6))


# --- error rates -----------------------------------------------------------------------------------------------


def test_crossed_t_keeps_its_level_where_seeds_alone_do_not():
    """500 items, sd of seed effect .004, item effect .30, residual .30; three seeds; the null is true."""
    from evaluators.significance.item_tests import crossed_t, mean_item_variance
    from evaluators.significance.seed_tests import paired_t

    rng = np.random.default_rng(1)
    crossed, alone = [], []
    for _ in range(500):
        d = rng.normal(0, 0.004, (3, 1)) + rng.normal(0, 0.3, 500) + rng.normal(0, 0.3, (3, 500))
        both = (np.mean([mean_item_variance(row[None]) for row in d]) - mean_item_variance(d)) / (len(d) - 1)
        crossed.append(crossed_t(d.mean(1), mean_item_variance(d), 500, both).p)
        alone.append(paired_t(d.mean(1)).p)
    assert np.mean(np.array(crossed) <= 0.05) < 0.08
    assert np.mean(np.array(alone) <= 0.05) > 0.12


def test_an_auc_of_two_positives_keeps_its_level():
    """2 positives of 102, the null is true: read with all items' degrees of freedom it is rejected in a fourth."""
    rng, gold = np.random.default_rng(1), np.repeat([1.0, 0.0], [2, 100])
    found = []
    for _ in range(60):
        items = gold + rng.normal(0, 0.5, 102)
        arms = [items + rng.normal(0, 0.7, 102) + rng.normal(0, 0.2, (8, 102)) for _ in range(2)]
        found += judge([(claim(), with_items(*arms, "auc", gold))])
    assert {(one.n_groups, one.df_items) for one in found} == {(102, 1)}
    assert np.mean([one.p <= 0.05 for one in found]) < 0.08  # type: ignore[operator]


def test_three_paired_seeds_by_hand():
    """Deltas .02, .02 and -.01 have mean .01 and variance (1 + 1 + 4) / 20,000; two of three agree with the mean."""
    pairs = pair({0: 0.5, 1: 0.62, 2: 0.4}, {0: 0.48, 1: 0.6, 2: 0.41})
    assert pairs.deltas == pytest.approx([0.02, 0.02, -0.01])
    found = judge([(claim(), pairs)])[0]
    assert (found.delta_mean, found.delta_sd) == pytest.approx((0.01, 0.01732050808), abs=1e-10)
    assert (found.k_agree, found.n_seeds, found.df, found.cs_low, found.cs_high) == (2, 3, 2, None, None)
    dz, j = 1 / math.sqrt(3), 1 / math.sqrt(math.pi)  # J of two degrees of freedom: Γ(1) / (√1 Γ(½))
    assert (found.effect_dz, found.hedges_g, found.statistic) == pytest.approx((dz, j * dz, math.sqrt(3) * dz))
    assert found.correlation == pytest.approx(np.corrcoef(pairs.treatment, pairs.control)[0, 1])


def test_seeds_agree_with_what_is_shown_where_later_ones_took_the_mean_elsewhere():
    """The first six show a gain and eight later ones lose more: 7 of 14 gained, and the mean is a loss."""
    deltas = [1.0, 1.5, 0.7, 1.2, 0.9, 1.3, -2.5, -3.0, -2.0, -3.5, -2.5, -1.0, 0.5, -1.5]
    found = judge([(claim(), paired(deltas))], sequential=Sequential(n_max=14))[0]
    assert (found.verdict, found.k_agree, found.sign_agreement) == ("better", 7, 0.5)
    assert found.delta_mean < 0 < found.ci_low
    told = " (later seeds took the mean of all out of the interval, which holds at every look)"
    assert found.words == f"better{told}"
    assert found.sentence.endswith(told)


@pytest.mark.parametrize(
    ("deltas", "words"),
    [
        ([0.0, 0.0, 0.0], "identical results"),
        ([1e-4, 2e-4, 1e-4], "the arms differ by no more than the rounding of scores of this size"),
    ],
)
def test_only_equal_scores_are_called_identical(deltas: list[float], words: str):
    control = np.array([1e9, 1e9 + 1, 1e9 + 2])
    pairs = PairedSeeds(seeds=(0, 1, 2), treatment=tuple(control + deltas), control=tuple(control))
    found = judge([(claim(), pairs)])[0]
    assert found.words == f"undecided: {words}"
    assert ("the same at every seed" in found.sentence) == (deltas[0] == 0)


@pytest.mark.parametrize("power", [665, -665])
def test_correlations_of_figures_of_any_size_are_judged_alike(power: int):
    """At 1e200 squares overflow, at 1e-200 they vanish; to multiply by a power of two changes no digit."""
    rng = np.random.default_rng(4)
    gold = rng.normal(size=50)
    arms = [gold + noise * rng.normal(size=(3, 50)) for noise in (0.5, 1.0)]
    plain, sized = (
        judge([(claim(), with_items(*(np.ldexp(arm, by) for arm in arms), "pearson", np.ldexp(gold, by)))])[0]
        for by in (0, power)
    )
    assert plain.p is not None
    assert sized.to_dict() == plain.to_dict()
