"""Golden numbers come from an independent numpy script, the oracles are scipy and statsmodels."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from evaluators.significance.seed_tests import (
    bca,
    effect_dz,
    hedges_factor,
    levelled,
    paired_t,
    seed_p,
    seed_test,
    sign_flip,
    sign_test,
    smallest_sign_flip_p,
    spread_is_rounding,
    wilcoxon,
)

D7 = np.array([0.012, 0.008, -0.003, 0.015, 0.006, 0.011, 0.009])
TIES = np.array([0.01, 0.01, -0.01, 0.02, 0, 0.03, 0.02])


def random_deltas(low: int, high: int, *, ties: bool = False, count: int = 200) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    drawn = [rng.normal(rng.uniform(-1, 1), size=rng.integers(low, high + 1)) for _ in range(count)]
    return [np.round(d, 1) for d in drawn] if ties else drawn


def test_paired_t_golden():
    t = paired_t(D7)
    low, high = t.interval(0.05)
    assert t.mean == pytest.approx(0.00828571429, abs=1e-11)
    assert D7.std(ddof=1) == pytest.approx(0.00576524893, abs=1e-11)
    assert [t.t, t.p, low, high] == pytest.approx(
        [3.80242721, 0.00894237884, 0.00295374832, 0.0136176802], abs=1e-8
    )
    assert effect_dz(D7) == pytest.approx(1.4371824)
    assert hedges_factor(7) == pytest.approx(0.868626688)
    assert effect_dz(D7) * hedges_factor(7) == pytest.approx(1.24837499)


def test_paired_t_agrees_with_scipy():
    for d in random_deltas(2, 30):
        ours, theirs = paired_t(d), stats.ttest_1samp(d, 0)
        interval = theirs.confidence_interval(0.95)
        assert (ours.t, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
        assert ours.interval(0.05) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_tost_golden_and_statsmodels():
    assert paired_t(D7).p_equivalent(0.015) == pytest.approx(0.0108138314, abs=1e-9)
    for d in random_deltas(2, 30):
        assert paired_t(d).p_equivalent(0.7) == pytest.approx(ttost_paired(d, 0 * d, -0.7, 0.7)[0], abs=1e-10)


def test_tost_is_the_90_percent_interval_inside_the_margin():
    for d in random_deltas(2, 12):
        t = paired_t(d)
        low, high = t.interval(0.10)
        assert (t.p_equivalent(0.8) <= 0.05) == (-0.8 < low <= high < 0.8)


def test_interval_below_a_bound_is_its_p():
    for d in random_deltas(3, 9):
        t = paired_t(d)
        assert (t.p_interval_below(0.3) <= 0.05) == (t.interval(0.05)[1] <= 0.3)


def test_hedges_factor_is_exact_at_two_degrees_of_freedom():
    assert hedges_factor(3) == pytest.approx(0.5641896)  # the usual approximation gives .571
    with pytest.raises(ValueError, match="at least 3"):
        hedges_factor(2)


def test_paired_t_refuses_what_has_no_standard_error():
    with pytest.raises(ValueError, match="all equal"):
        paired_t(np.array([0.5, 0.5, 0.5]))
    with pytest.raises(ValueError, match="at least 2"):
        paired_t(np.array([0.5]))


def test_equal_deltas_with_rounding_have_no_spread():
    deltas = np.array([0.8, 0.7, 0.6]) - np.array([0.7, 0.6, 0.5])
    assert deltas.std() > 0
    assert spread_is_rounding(deltas, 0.8)
    assert not spread_is_rounding(np.array([1e-13, 2e-13]))  # small is not equal
    assert spread_is_rounding(np.array([0.3]))  # and one alone has none


def test_sign_test_golden():
    found = sign_test(D7)
    assert (found.positive, found.negative, found.zero, found.p) == (6, 1, 0, 0.125)
    assert sign_test(np.zeros(4)).p == 1.0
    assert sign_test(TIES).zero == 1
    for positive, negative in product(range(9), range(9)):
        d = np.repeat([1.0, -1.0, 0.0], [positive, negative, 2])
        exact = stats.binomtest(positive, positive + negative).pvalue if positive + negative else 1.0
        assert sign_test(d).p == pytest.approx(exact)


def test_wilcoxon_golden_with_and_without_ties():
    assert (wilcoxon(D7).w_plus, wilcoxon(D7).p) == (27, 0.03125)
    assert (wilcoxon(TIES).w_plus, wilcoxon(TIES).p) == (19, 0.125)
    assert wilcoxon(np.zeros(3)).p == 1.0


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=12), st.integers(-9, 15))
def test_deltas_of_decimals_tie_as_decimals_do(hundredths: list[tuple[int, int]], places: int):
    """0.81 - 0.80 and 0.75 - 0.74 are one size, and 0.3 - 0.1 - (0.5 - 0.3) is nothing, though not as floats."""
    treatment, control = np.array(hundredths).T / 10.0**places
    found = levelled(treatment - control, 100 / 10.0**places)
    exact = np.array([t - c for t, c in hundredths], dtype=float)
    ranks = stats.rankdata(np.abs(exact), method="dense")
    assert (np.sign(found) == np.sign(exact)).all()
    assert (stats.rankdata(np.abs(found), method="dense") == ranks).all()
    assert wilcoxon(found) == wilcoxon(exact)
    assert sign_test(found) == sign_test(exact)
    assert levelled(np.array([0.3 - 0.1 - (0.5 - 0.3), 0.1]), 0.5).tolist() == [0, 1]


def test_wilcoxon_is_the_enumeration_of_all_signs():
    for d in random_deltas(2, 9, ties=True, count=60):
        kept = d[d != 0]
        ranks = stats.rankdata(np.abs(kept))
        law = np.array([ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(kept))])
        w = ranks[kept > 0].sum()
        expected = min(1.0, 2 * min(np.mean(law <= w + 1e-9), np.mean(law >= w - 1e-9)))
        assert wilcoxon(d).p == pytest.approx(expected)


def test_wilcoxon_agrees_with_scipy():
    for d in random_deltas(2, 25):
        assert wilcoxon(d).p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue)
    for d in random_deltas(26, 60, ties=True):
        kept = d[d != 0]
        if len(kept) > 25:
            theirs = stats.wilcoxon(kept, method="asymptotic", correction=True)
            assert wilcoxon(d).p == pytest.approx(theirs.pvalue)


def test_sign_flip_golden():
    assert (sign_flip(D7).p, sign_flip(D7).p_greater) == (0.03125, 0.015625)


def test_sign_flip_is_the_enumeration_of_all_signs():
    for d in random_deltas(2, 8, ties=True):
        means = np.array([np.dot(signs, d) for signs in product([1, -1], repeat=len(d))])
        assert sign_flip(d).p == np.mean(np.abs(means) >= abs(d.sum()) - 1e-9)
        assert sign_flip(d).p_greater == np.mean(means >= d.sum() - 1e-9)
        assert sign_flip(1e-15 * d) == sign_flip(d) == sign_flip(1e15 * d)


def test_sign_flip_agrees_with_scipy():
    for d in random_deltas(3, 8, count=15):
        theirs = stats.permutation_test(
            (d, 0 * d), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
        )
        assert sign_flip(d).p == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize(("n", "floor"), [(3, 0.25), (5, 0.0625), (6, 0.03125), (8, 0.0078125), (16, 2**-15)])
def test_sign_flip_never_falls_below_its_floor(n: int, floor: float):
    assert sign_flip(np.full(n, 0.1)).p == floor == smallest_sign_flip_p(n)


def test_drawn_sign_flips_never_fall_below_one_draw():
    """One in 100,001, the identity itself; of 17 seeds 2^-16 is more."""
    found = sign_flip(np.full(60, 0.1), np.random.default_rng(0))
    assert found.p == found.p_greater == 1 / 100_001 == smallest_sign_flip_p(60) == smallest_sign_flip_p(18)
    assert smallest_sign_flip_p(17) == 2**-16


@pytest.mark.parametrize(("sign", "digits"), [(1, 9), (-1, 9), (-1, 0)])  # in whole tenths many sums tie
def test_drawn_sign_flips_approach_the_exact_p_and_ignore_global_state(sign: int, digits: int):
    d = 0.1 * sign * np.random.default_rng(3).normal(0.45, 1, size=18).round(digits)
    sums = np.zeros(1)
    for x in d:
        sums = np.concatenate([sums + x, sums - x])
    exact, greater = np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12), np.mean(sums >= d.sum() - 1e-12)
    np.random.seed(1)  # noqa: NPY002  the point: global state must not matter
    first = sign_flip(d, np.random.default_rng(5))
    np.random.seed(2)  # noqa: NPY002
    assert sign_flip(d, np.random.default_rng(5)) == first
    assert first.p == pytest.approx(exact, abs=4 * np.sqrt(exact / 1e5))
    assert first.p_greater == pytest.approx(greater, abs=4 * np.sqrt(greater / 1e5))
    with pytest.raises(ValueError, match="generator"):
        sign_flip(d)


def test_bca_golden():
    interval = bca(D7[:5])
    assert interval is not None
    assert [interval.low, interval.high] == pytest.approx([0.001, 0.012])
    assert [interval.z0, interval.a] == pytest.approx([-0.054571305, -0.0451267799], abs=1e-9)


@pytest.mark.parametrize(
    "whole", [(0, 1), (-3, 0, 3), (0, 0, 1, 9), (2, -1, -1, 0, 4), (-1, 5, 5, 5, 5), (0, 1, 1, 2, 3, 8)]
)
def test_bca_is_the_enumeration_of_all_resamples(whole: tuple[int, ...]):
    """Of whole numbers, whose sums tie with the observed one exactly; a is what leaving one out gives."""
    sums = np.array([sum(drawn) for drawn in product(whole, repeat=len(whole))])
    z0 = stats.norm.ppf((np.mean(sums < sum(whole)) + np.mean(sums <= sum(whole))) / 2)
    left_out = np.array([np.mean(whole[:k] + whole[k + 1 :]) for k in range(len(whole))])
    u = left_out.mean() - left_out
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    at = z0 + stats.norm.ppf([0.025, 0.975])
    ends = np.quantile(sums / len(whole), stats.norm.cdf(z0 + at / (1 - a * at)))
    for unit in (0.1, 1e-200, 1e200):  # in tenths the sums do not tie as floats
        found = bca(unit * np.array(whole))
        assert found is not None
        assert (found.z0, found.a) == pytest.approx((z0, a), abs=1e-12)
        assert (found.low / unit, found.high / unit) == pytest.approx(tuple(ends))


def test_bca_agrees_with_scipy():
    d = np.random.default_rng(0).exponential(size=14)
    ours = bca(d, np.random.default_rng(1))
    theirs = stats.bootstrap((d,), np.mean, method="BCa", n_resamples=50_000, rng=np.random.default_rng(2))
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx(theirs.confidence_interval, abs=0.03)
    with pytest.raises(ValueError, match="7 deltas draws resamples"):
        bca(d[:7])


def test_bca_has_nothing_to_say_without_spread():
    assert bca(np.full(5, 0.2)) is None


def test_which_test_decides_depends_on_seeds_and_claims_only():
    assert seed_test(1, 1) == "none"
    assert seed_test(7, 1) == "paired t"
    assert seed_test(8, 1) == "exact sign-flip"
    assert [seed_test(n, 5) for n in (8, 9, 10)] == ["paired t", "paired t", "exact sign-flip"]
    assert [seed_test(n, 10) for n in (10, 11)] == ["paired t", "exact sign-flip"]
    assert [seed_test(n, 1) for n in (16, 17)] == ["exact sign-flip", "sign-flip (100,000 draws)"]
    assert [seed_test(n, 800) for n in (17, 18)] == ["paired t", "sign-flip (100,000 draws)"]
    assert seed_test(17, 2_000) == "paired t"  # one draw in 100,001 is no level of that family


@settings(deadline=None)
@given(
    st.lists(st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=2, max_size=10),
    st.floats(0.01, 100),
)
def test_mirror_and_scale(values: list[float], scale: float):
    d = np.array(values)
    if spread_is_rounding(d):
        return
    for test in (
        lambda x: paired_t(x).p,
        lambda x: sign_flip(x).p,
        lambda x: wilcoxon(np.round(x, 12)).p,
        effect_dz,
    ):
        assert abs(test(-d)) == pytest.approx(abs(test(d)), rel=1e-6)
    assert paired_t(scale * d).p == pytest.approx(paired_t(d).p, rel=1e-6)
    assert sign_flip(scale * d).p == sign_flip(d).p


def test_rounding_is_measured_against_the_scores():
    """Scores of 1 and -1 that vary in their twelfth digit: no rounding of theirs, though it is of their difference."""
    d = np.array([2.0, 2.0 + 2.4e-12, 2.0 + 1.2e-12, 2.0, 2.0 + 2.4e-12])
    assert spread_is_rounding(d)
    assert not spread_is_rounding(d, scale=1.0)
    assert paired_t(d, scale=1.0).se == pytest.approx(d.std(ddof=1) / np.sqrt(5))


@pytest.mark.parametrize(("n", "claims"), [(3, 1), (5, 1), (10, 1)])
def test_type_one_error_of_the_deciding_test(n: int, claims: int):
    rng = np.random.default_rng(7)
    drawn = [rng.normal(size=n) for _ in range(500)]
    p = [seed_p(d, paired_t(d), claims=claims, rng=lambda: rng)[1] for d in drawn]
    assert np.mean(np.array(p) <= 0.05) < 0.08
