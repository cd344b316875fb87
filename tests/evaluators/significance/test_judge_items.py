"""Verdicts of claims whose metric has items, and of gains that a matched control isolates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.item_tests import steiger
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import ItemScores, ItemsError, ItemSum, align_items
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict
from tests.paired_claims import claim, isolated, mean_items, with_items

# --- items ----------------------------------------------------------------------------------------------------------


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
    pairs = with_items(rng.normal(size=(3, 31)), rng.normal(size=(3, 31)), "auc", gold)
    found = judge([(claim(), pairs)])[0]
    assert found.words == "undecided: independent items labelled 1: 1, auc needs at least 2"
    for declared, sequential in ((claim(scope="test_set"), None), (claim(), Sequential())):  # no items are sampled
        found, without = (
            judge([(declared, one)], sequential=sequential)[0] for one in (pairs, replace(pairs, items=None))
        )
        assert found.test is not None
        assert found.sentence == without.sentence


@pytest.mark.parametrize("kind", ["auc", "balanced_accuracy"])
def test_a_gain_on_one_text_is_none_on_the_task(kind: str):
    """A treatment that is better on the questions of one text, whatever the class, may be so by chance."""
    gold, on_text = np.tile([1.0, 0.0], 60), np.arange(120) < 60
    rng = np.random.default_rng(4)
    control = 0.5 + 0.2 * (gold - 0.5) + 0.3 * rng.normal(size=(5, 120))
    pairs = with_items(control + 0.5 * (gold - 0.5) * on_text, control, kind, gold)
    assert isinstance(pairs.items, ItemScores)
    groups = tuple("text" if one else item for one, item in zip(on_text, pairs.items.item_ids, strict=True))
    found = judge([(claim(), replace(pairs, items=replace(pairs.items, group_ids=groups)))])[0]
    assert found.p_seeds_alone < 0.01 < 0.05 < found.p  # type: ignore[operator]


def test_one_text_of_half_the_items_is_no_sample_of_texts():
    """By a degree of freedom for each of 61 groups but one it would be better, with p = .012."""
    pairs = mean_items(5, 120, seed_sd=0.003, item_sd=0.1, noise=0.02, effect=0.03, seed=1)
    assert isinstance(pairs.items, ItemScores)

    def judged(on_text: int) -> Verdict:
        groups = ("text",) * on_text + pairs.items.item_ids[on_text:]
        return judge([(claim(), replace(pairs, items=replace(pairs.items, group_ids=groups)))])[0]

    found = judged(60)
    assert (found.n_groups, found.df_items) == (61, pytest.approx(120**2 / (60**2 + 60) - 1))
    assert found.p == pytest.approx(0.105, abs=5e-4)
    many = "one group holds so many of the items that they count as 1.8 groups, needs at least 2"
    assert judged(90).words == f"undecided: {many}"


def test_aligned_items_feed_a_verdict():
    rng = np.random.default_rng(3)
    runs = {arm: {s: dict(zip("abcdefghij", rng.uniform(size=10), strict=True)) for s in range(4)} for arm in "AB"}
    items = align_items(range(4), runs["A"], runs["B"], aggregate="mean")
    means = [{s: float(np.mean(list(row.values()))) for s, row in runs[arm].items()} for arm in "AB"]
    found = judge([(claim(), replace(pair(*means), items=items))])[0]
    assert found.test == "crossed t"


# --- signal isolation -----------------------------------------------------------------------------------------------


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


def test_a_replicate_without_any_gain_has_no_share():
    """A seed without a gain may be drawn five times: a share of nothing is neither infinite nor no number."""
    found = isolated([0.0, 0.5, 0.5, 0.5, 0.5], [0.0, 0.25, 0.25, 0.25, 0.25])
    assert (found.share, found.share_low, found.share_high) == pytest.approx((0.5, 0.5, 0.5))


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
