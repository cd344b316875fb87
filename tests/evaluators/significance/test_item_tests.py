"""Golden numbers come from an independent numpy script; oracles: the O(mn) DeLong, scikit-learn, statsmodels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from evaluators.significance.item_bootstrap import Undefined, jackknife_item_variance, resampled_deltas
from evaluators.significance.item_tests import (
    ItemVariance,
    crossed_t,
    delong,
    delong_variance,
    item_variance,
    item_view,
    mcnemar,
    mean_item_variance,
    resampled_variance,
    single_run,
    steiger,
    williams,
)
from evaluators.significance.paired_items import ItemScores, ItemSum
from evaluators.significance.power import more_seeds
from evaluators.significance.seed_tests import Estimate, paired_t

Y = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
A = np.array([0.9, 0.8, 0.4, 0.7, 0.5, 0.3, 0.2, 0.6, 0.1, 0.35])
B = np.array([0.6, 0.9, 0.3, 0.5, 0.55, 0.4, 0.2, 0.45, 0.3, 0.1])
D = np.array([[0.1, 0, 0.2, 0.3, -0.1], [0.2, 0.1, 0.1, 0.4, 0], [0, 0.1, 0.3, 0.2, 0.1]])


def items_of(
    kind: str, treatment: np.ndarray, control: np.ndarray, gold: np.ndarray | None = None, groups: int = 1
) -> ItemScores:
    ids = tuple(map(str, range(treatment.shape[1])))
    group_ids = tuple(str(j // groups) for j in range(treatment.shape[1]))
    return ItemScores(
        aggregate=kind, treatment=treatment, control=control, gold=gold, item_ids=ids, group_ids=group_ids
    )  # type: ignore[arg-type]


def test_crossed_t_golden():
    v_item = mean_item_variance(D)
    t = crossed_t(D.mean(1), v_item, 5)
    assert t.mean == pytest.approx(0.133333333)
    assert D.mean(1).var(ddof=1) / 3 == pytest.approx(0.000311111111)
    assert v_item == pytest.approx(0.00277777778)
    assert (t.df, t.item_df, t.item_share) == pytest.approx((2, 4, 0.00277777778 / 0.00308888889))


@pytest.mark.parametrize(
    ("mean", "v_seed", "v_item", "v_both", "n", "groups", "half", "p"),
    [
        (0.0174, 9e-6, 2.34e-5, 3.05e-6, 8, 1200, 0.011277355, 0.004850425),
        (1.2, 0.09, 0.25, 0.04, 3, 50, 1.536540807, 0.088939547),
        (1.2, 0.25, 0.09, 0.04, 2, 400, 5.993360150, 0.245975591),
        (0.5, 0.02, 0, 0, 5, 100, 0.392648632, 0.024110111),
    ],
)
def test_crossed_interval_golden(mean, v_seed, v_item, v_both, n, groups, half, p):
    deltas = np.resize([-1.0, 1.0], n) if n % 2 == 0 else np.append(np.resize([-1.0, 1.0], n - 1), 0.0)
    deltas = mean + deltas * (n * v_seed / deltas.var(ddof=1)) ** 0.5
    t = crossed_t(deltas, v_item, groups, v_both)
    low, high = t.interval(0.05)
    assert ((high - low) / 2, t.p) == pytest.approx((half, p), abs=1e-9)
    assert t.interval(t.p)[0] == pytest.approx(0, abs=1e-9 * mean)  # p is the alpha at which the interval meets 0


@given(st.floats(0, 1), st.integers(2, 30), st.integers(2, 5_000), st.floats(0, 60), st.floats(0.001, 40))
def test_one_sided_p_is_where_the_interval_ends(share, n, groups, mean, bound):
    t = Estimate(mean, 1.0, n - 1, groups - 1, share)
    p = t.p_above(-bound)
    if p > 1e-290:
        assert t.interval(2 * p)[0] == pytest.approx(-bound, rel=1e-6)
    assert t.p_above(bound) + t.p_below(bound) == pytest.approx(1)
    assert t.p_equivalent(bound) == max(t.p_above(-bound), t.p_below(bound))


@pytest.mark.parametrize(("df", "item_df"), [(4, 20), (87, 4), (4, 2), (1, 62), (4, 4)])
def test_a_mean_of_nearly_zero_has_a_p_of_nearly_one(df, item_df):
    """There a tail falls short of ½ by the distance times the density, which is flat."""
    for share, mean in itertools.product((0.05, 0.5, 0.8), np.geomspace(1e-18, 1e-5, 80)):
        short = mean / math.hypot(*np.sqrt([1 - share, share]) / stats.t.pdf(0, [df, item_df]))
        found = Estimate(mean, 1.0, df, item_df, share)
        assert found.p == pytest.approx(1 - 2 * short, abs=1e-7)
        assert found.p <= 1
        assert found.p_below(0) == pytest.approx(0.5 + short, abs=1e-7)


def test_a_p_below_the_smallest_float_is_zero():
    """Where that is so of the items' part alone, p is nearly that of the seeds' part. It is where 0.5 t² of the seeds
    and 0.5 t² of the items add up to 5000: at a tail of 5e-5 the first t is 100, and the second only 3.9."""
    assert Estimate(1.0, 1e-90, 9, 499, 0.5).p == 0
    alone, both = Estimate(100.0, 1.0, 2, 4999, 0.0), Estimate(100.0, 2**0.5, 2, 4999, 0.5)
    assert both.p == pytest.approx(alone.p, rel=0.01)


@pytest.mark.parametrize("n", [2, 4])
def test_noise_of_single_cells_counts_once(n):
    """V_both is the residual mean square of the two-way table over its n·M cells; V is then what it should be."""
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(n, 30)) + rng.normal(size=(n, 1)) + rng.normal(size=(1, 30))
    items = items_of("mean", differences, np.zeros_like(differences))
    left = differences - differences.mean(0) - differences.mean(1)[:, None] + differences.mean()
    variance = item_view(items, 1, np.random.default_rng(1)).variance
    assert variance.v_both == pytest.approx((left**2).sum() / ((n - 1) * 29) / (n * 30))
    v_seed = differences.mean(1).var(ddof=1) / n
    t = crossed_t(differences.mean(1), variance.v_item, 30, variance.v_both)
    assert t.se**2 == pytest.approx(v_seed + variance.v_item - variance.v_both)
    found = variance.noise(math.inf, n, items)
    assert found.item**2 == pytest.approx(variance.v_item - variance.v_both)  # what no number of seeds takes away
    assert found.cell**2 == pytest.approx(n * variance.v_both)  # of one seed
    single = items_of("mean", differences[:1], np.zeros((1, 30)))
    alone = item_variance(single, np.random.default_rng(1))  # one seed cannot tell the two apart
    assert (alone.v_item, alone.v_both) == (pytest.approx(differences[0].var(ddof=1) / 30), 0)


def test_what_items_add_to_every_seed_alike_is_not_noise_of_cells():
    shared = np.repeat(np.random.default_rng(0).normal(size=(1, 50)), 4, 0)
    items = items_of("mean", shared, np.zeros_like(shared))
    variance = item_view(items, 1, np.random.default_rng(1)).variance
    assert variance.v_both == pytest.approx(0, abs=1e-15)
    assert variance.noise(1.0, 4, items).item ** 2 == pytest.approx(variance.v_item)


def test_of_equal_deltas_all_item_variance_lasts():
    """Cells that made it would have made the deltas vary too: as in the interval itself, one is never below the other."""
    cells = np.random.default_rng(0).normal(size=(4, 30))
    items = items_of("mean", cells - cells.mean(1)[:, None], np.zeros_like(cells))
    variance = item_view(items, 1, np.random.default_rng(1)).variance
    assert variance.v_both > 0.9 * variance.v_item
    found = variance.noise(0.0, 4, items)
    assert found.item**2 == pytest.approx(variance.v_item)
    assert not more_seeds(4, found, aim="difference", alpha=0.05, effect=0.01).settles


def test_crossed_t_without_one_of_the_variances():
    deltas = np.array([1.0, 2.0, 4.0])
    assert crossed_t(deltas, 0.0, 50).p == pytest.approx(paired_t(deltas).p)
    assert crossed_t(np.array([1.0, 1.0, 1.0]), 0.1, 50).p == pytest.approx(2 * stats.t.sf(0.1**-0.5, 49))
    with pytest.raises(ValueError, match="neither"):
        crossed_t(np.array([1.0, 1.0]), 0.0, 50)
    assert crossed_t(np.array([1.0, 3.0]), 1.0, 50).se == pytest.approx(2**0.5)  # equal variances are two


def test_item_variance_in_closed_form_is_the_bootstrap_in_the_limit():
    rng = np.random.default_rng(0)
    gold = (rng.uniform(size=300) > 0.7).astype(float)
    labels = (np.where(rng.uniform(size=(4, 300)) < p, gold, 1 - gold) for p in (0.8, 0.7))
    treatment, control = (0.5 + 0.1 * label for label in labels)  # of a half the label is 0
    for kind, groups in (("balanced_accuracy", 1), ("mean", 1), ("mean", 3)):
        items = items_of(kind, treatment, control, gold, groups)
        view = item_view(items, 1, np.random.default_rng(1))
        drawn = resampled_deltas(items, np.random.default_rng(2), 4_000)
        assert drawn is not None
        assert view.variance.method == "analytic"
        assert view.variance.v_both == pytest.approx(resampled_variance(items, drawn).v_both, rel=0.1)
        assert view.variance.v_item == pytest.approx(drawn.mean(0).var(), rel=0.1)
        assert view.variance.v_item == pytest.approx(jackknife_item_variance(items))


def test_groups_of_unequal_size_and_rank_metrics_are_bootstrapped():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 50))
    assert item_view(items_of("mean", a, b, groups=3), 1, rng).variance.method == "bootstrap"
    assert item_view(items_of("spearman", a, b, rng.normal(size=50)), 1, rng).variance.method == "bootstrap"
    assert item_view(items_of("mean", a, b, groups=3), 1, rng).groups == 17
    label = np.arange(50) % 5 < 2
    for kind, groups, method in (
        ("mean", 3, "bootstrap"), ("mean", 2, "analytic"),
        ("balanced_accuracy", 5, "bootstrap"), ("balanced_accuracy", 1, "analytic"),
    ):  # fmt: skip
        view = item_view(items_of(kind, a, b, label * 1.0, groups), 1, rng, interval=False)
        assert (view.variance.method, view.two_level) == (method, None)


def test_few_groups_vary_as_much_by_resamples_as_by_the_formula():
    """One item fewer makes 5 equal groups unequal: resamples of them spread by 4/5 of what new ones would."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=5).repeat(200) + rng.normal(0, 0.1, size=(4, 1000)) for _ in range(2))
    equal, fewer = (
        item_view(items_of("mean", a[:, :size], b[:, :size], groups=200), 1, np.random.default_rng(1)).variance
        for size in (1000, 999)
    )
    assert (equal.method, fewer.method) == ("analytic", "bootstrap")
    assert fewer.v_item == pytest.approx(equal.v_item, rel=0.1)


def test_resamples_of_items_by_themselves_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=30)
    for kind in ("spearman", "pearson", "f1", "sd"):
        items = items_of(kind, *rng.normal(gold, 1, size=(2, 3, 30)), (gold > 0) * 1.0 if kind == "f1" else gold)
        drawn = resampled_deltas(items, np.random.default_rng(1), 300)
        assert drawn is not None
        found = resampled_variance(items, drawn)
        assert found.v_item == drawn.mean(0).var(ddof=1)
        assert found.v_both == pytest.approx(max(0, drawn.var(1, ddof=1).mean() - found.v_item) / 2)
        assert items.effective == items.groups == 30


def test_an_item_variance_by_class_rests_on_the_rarer_class():
    """Three positives among 43 items: an AUC's variance is theirs, 3/2 of what their resamples spread by."""
    rng = np.random.default_rng(0)
    gold = np.repeat([1.0, 0.0], [3, 40])
    a, b = rng.normal(gold, 1, size=(2, 4, 43))
    items = items_of("auc", a, b, gold)
    drawn = resampled_deltas(items, np.random.default_rng(1), 300)
    assert drawn is not None
    found = resampled_variance(items, drawn)
    assert found.v_item == pytest.approx(1.5 * drawn.mean(0).var(ddof=1))
    assert found.v_both == pytest.approx((1.5 * drawn.var(1, ddof=1).mean() - found.v_item) / 3)
    assert (items.groups, items.effective) == (43, 3)
    view = item_view(items_of("balanced_accuracy", a, b, gold), 1, np.random.default_rng(1))
    assert (view.groups, view.effective, view.variance.noise(1.0, 4, view).item_df) == (43, 3, 2)
    assert items_of("f1", a, b, gold).effective == 43


def test_groups_that_hold_both_classes_count_for_either():
    """Of 15 groups, 13 hold both labels, one holds only ones and one only zeros, two each."""
    rng = np.random.default_rng(0)
    gold = np.array([1.0, 0.0] * 13 + [1.0, 1.0, 0.0, 0.0])
    items = items_of("auc", *rng.normal(gold, 1, size=(2, 4, 30)), gold, groups=2)
    assert (items.groups, items.effective) == (15, 15**2 / 17)


def test_few_distinct_predictions_fall_back_to_the_jackknife():
    gold = np.arange(40.0)
    rare = np.zeros((1, 40))
    rare[0, :2] = 1.0, 2.0
    items = items_of("spearman", rare, gold[None], gold)
    found = item_variance(items, np.random.default_rng(0))
    without = [stats.spearmanr(np.delete(rare[0], k), np.delete(gold, k)).statistic for k in range(40)]
    assert found == ItemVariance(pytest.approx(39 * np.var(without)), 0.0, "jackknife")
    view = item_view(items, 1, np.random.default_rng(0))
    assert (view.variance, view.two_level) == (found, None)


@pytest.mark.parametrize("interval", [True, False])
@pytest.mark.parametrize(
    ("kind", "labels"), [("auc", "01"), ("balanced_accuracy", "01"), ("f1", "1")]
)  # an f1 has no use for items labelled 0 and predicted so
def test_a_class_of_one_item_has_no_variance(kind, labels, interval):
    rng = np.random.default_rng(0)
    for label in "01":
        gold = np.where(np.arange(6) == 2, float(label), 1 - float(label))
        items = items_of(kind, gold + rng.normal(size=(2, 6)), gold + rng.normal(size=(2, 6)), gold)
        if label in labels:
            with pytest.raises(Undefined, match=f"labelled {label}: 1, {kind} needs at least 2"):
                item_view(items, 1, rng, interval=interval)
        else:
            assert item_view(items, 1, rng, interval=interval).variance.v_item > 0


def test_scores_whose_squares_are_no_numbers_have_no_variance():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 9))
    for scale in (1e-141, 1e141):
        with pytest.raises(Undefined, match="squares beyond"):
            item_view(items_of("mean", scale * a, np.zeros((3, 9))), 1, rng)
        scale = math.sqrt(scale)
        found = item_variance(items_of("mean", scale * a, scale * b), rng)
        assert found.v_item / scale**2 == pytest.approx((a - b).mean(0).var(ddof=1) / 9)
        ranked = items_of("spearman", scale**2 * a, scale**2 * b, np.arange(9.0))  # nothing is squared but ranks
        assert item_variance(ranked, np.random.default_rng(1)).v_item > 0
    assert item_variance(items_of("mean", 0 * a, 0 * b), rng).v_item == 0


def test_two_level_interval_follows_the_direction_of_the_metric():
    rng = np.random.default_rng(0)
    items = items_of("mean", rng.normal(1, 1, size=(4, 100)), rng.normal(size=(4, 100)))
    up, down = (item_view(items, sign, np.random.default_rng(1)).two_level for sign in (1, -1))
    assert up == pytest.approx((-down[1], -down[0]))  # type: ignore[index]


def test_steiger_and_williams_golden():
    z, t = steiger(0.5, 0.4, 0.1, 103), williams(0.5, 0.4, 0.1, 103)
    assert (z.statistic, z.p) == pytest.approx((0.88871847, 0.374154402), abs=1e-8)
    assert (t.statistic, t.p) == pytest.approx((0.891279905, 0.374918517), abs=1e-8)
    cale = steiger(0.79, 0.73, 0.9, 46)  # two models of change in meaning over 46 words
    assert (cale.statistic, cale.p) == pytest.approx((1.40895413, 0.158848732))
    assert steiger(0.5, 0.4, 0.1, 103, ranks=True).statistic == pytest.approx(0.88871847 / 1.06**0.5)
    for test, found in ((steiger, z), (williams, t)):
        mirrored = test(0.4, 0.5, 0.1, 103)
        assert (mirrored.statistic, mirrored.p) == pytest.approx((-found.statistic, found.p))


def test_dependent_correlations_hold_their_level():
    rng = np.random.default_rng(1)
    for test, n in ((steiger, 60), (williams, 15)):
        p = []
        for _ in range(400):
            gold = rng.normal(size=n)
            r = np.corrcoef([gold + rng.normal(size=n), gold + rng.normal(size=n), gold])
            p.append(test(r[0, 2], r[1, 2], r[0, 1], n).p)
        assert np.mean(np.array(p) <= 0.05) < 0.08  # type: ignore[operator]


def test_dependent_correlations_refuse_perfect_ones():
    whole = ((1.0, 0.4, 0.1, 50), (-1.0, 0.4, 0.1, 50), (0.4, -1.0, 0.1, 50), (0.1, 0.4, -1.0, 50))
    for bad in (*whole, (0.5, 0.4, 0.1, 4)):
        for test in (steiger, williams):
            with pytest.raises(Undefined, match="at least 5 items"):
                test(*bad)
    assert None not in (steiger(0.5, 0.4, 0.1, 5).p, williams(0.5, 0.4, 0.1, 5).p)


def test_mcnemar_golden_and_statsmodels():
    assert mcnemar(3, 10).p == pytest.approx(0.0922851562)
    assert (mcnemar(40, 22).statistic, mcnemar(40, 22).p) == pytest.approx((4.66129032, 0.0308499994), abs=1e-8)
    assert mcnemar(0, 0).p == 1.0
    rng = np.random.default_rng(0)
    for b, c in rng.integers(0, 60, size=(200, 2)):
        theirs = statsmodels_mcnemar([[0, b], [c, 0]], exact=b + c < 25).pvalue if b + c else 1.0
        assert mcnemar(int(b), int(c)).p == pytest.approx(min(1.0, theirs))


def test_delong_golden():
    aucs, variance = delong_variance(Y, A, B)
    assert aucs == pytest.approx((0.916666667, 0.8125))
    assert variance == pytest.approx(0.00642361111)
    assert (delong(Y, A, B).statistic, delong(Y, A, B).p) == pytest.approx((1.29968811, 0.193707886), abs=1e-8)
    assert (delong(Y, B, A).statistic, delong(Y, B, A).p) == pytest.approx((-1.29968811, 0.193707886), abs=1e-8)


def test_delong_agrees_with_the_definition():
    rng = np.random.default_rng(3)
    for _ in range(200):
        m, n = rng.integers(2, 12, size=2)
        y = np.repeat([1, 0], [m, n])
        a, b = np.round(rng.normal(size=(2, m + n)) + y, 1)
        psi = [np.subtract.outer(s[:m], s[m:]) for s in (a, b)]
        psi = [(p > 0) + 0.5 * (p == 0) for p in psi]
        s = np.cov([p.mean(1) for p in psi]) / m + np.cov([p.mean(0) for p in psi]) / n
        aucs, variance = delong_variance(y, a, b)
        assert aucs == pytest.approx((roc_auc_score(y, a), roc_auc_score(y, b)))
        assert variance == pytest.approx(s[0, 0] + s[1, 1] - 2 * s[0, 1], abs=1e-12)


def test_delong_on_equal_models():
    assert delong(Y, A, A).p == 1.0
    rng = np.random.default_rng(0)
    for size in range(5, 40):
        scores = rng.normal(size=size)
        found = delong(np.arange(size) % 3 == 0, scores, np.exp(scores))
        assert (found.statistic, found.p) == (None, 1.0)
    assert delong(Y, Y, 1.0 - Y).p is None  # all pairs in order against none: of such a difference nothing varies
    with pytest.raises(Undefined, match="1 items labelled 1 and 2 labelled 0, accepted: at least 2"):
        delong(np.array([1, 0, 0]), A[:3], B[:3])


def test_the_test_of_a_single_run_fits_the_metric():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=40)
    a, b = gold + rng.normal(size=(2, 1, 40))
    label = (gold > 0).astype(float)
    right = (rng.uniform(size=(2, 1, 40)) > 0.4).astype(float)
    names = [
        single_run(items_of("mean", right[0], right[1])),
        single_run(items_of("auc", a, b, label)),
        single_run(items_of("spearman", a, b, gold)),
        single_run(items_of("pearson", a[:, :20], b[:, :20], gold[:20])),
    ]
    names += [single_run(items_of("pearson", a[:, :size], b[:, :size], gold[:size])) for size in (29, 30)]
    names += [single_run(items_of("auc", right[0], right[1], label))]  # of hard labels, yet no accuracy
    assert [run.test for run in names if run] == [
        "McNemar's exact test", "DeLong's test", "Steiger's Z (approximate for ranks)", "Williams' t",
        "Williams' t", "Steiger's Z", "DeLong's test",
    ]  # fmt: skip
    for test, size in ((williams, 20), (steiger, 40)):
        found = single_run(items_of("pearson", 1e200 * a[:, :size], b[:, :size], gold[:size]))
        r = np.corrcoef([a[0, :size], b[0, :size], gold[:size]])  # of the numbers, not of their ranks
        expected = test(r[0, 2], r[1, 2], r[0, 1], size)
        assert found is not None
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.p))
    for arms in ((a, b), (right[0], b), (a, right[1])):
        assert single_run(items_of("mean", *arms)) is None
    assert single_run(items_of("f1", right[0], right[1], label)) is None
    assert single_run(ItemSum(((1.0, items_of("mean", right[0], right[1])),))) is None
    assert single_run(items_of("pearson", a, a, gold)) is None


def test_items_in_groups_have_no_test_of_a_single_run():
    """Two contexts of one pair of words are no two independent items."""
    rng = np.random.default_rng(5)
    gold = rng.normal(size=60)
    a, b = (gold + rng.normal(size=(2, 60)) for _ in range(2))
    alone = items_of("spearman", a, b, gold)
    assert single_run(alone, 1) == single_run(items_of("spearman", a[1:], b[1:], gold))
    assert single_run(alone) != single_run(alone, 1)
    assert single_run(items_of("spearman", a, b, gold, groups=2)) is None
