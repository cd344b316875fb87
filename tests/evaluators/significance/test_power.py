"""Golden numbers come from an independent numpy script; the oracle is statsmodels' TTestPower."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from evaluators.significance.power import (
    crossed_df,
    more_seeds,
    power_equivalence,
    power_one_sided,
    power_paired_t,
    reachable,
    seeds_required,
    seeds_required_crossed,
    smallest_effect,
    upper_sd_factor,
)


def test_power_golden():
    assert power_paired_t(5, 1.2) == pytest.approx(0.530221251, abs=1e-9)


def test_power_agrees_with_statsmodels():
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(200):
        n, dz, alpha = int(rng.integers(2, 60)), rng.uniform(0, 2), rng.uniform(0.005, 0.1)
        theirs = TTestPower().power(dz, n, alpha)
        if np.isfinite(theirs):  # the noncentral t behind it is NaN where the power is 1
            assert power_paired_t(n, dz, alpha) == pytest.approx(theirs, abs=1e-7)
            compared += 1
    assert compared > 120


def test_smallest_effects_golden():
    found = [smallest_effect(n) for n in (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)]
    assert found == pytest.approx(
        [11.55, 3.264, 2.128, 1.682, 1.435, 1.156, 0.996, 0.778, 0.660, 0.529, 0.404], abs=6e-4
    )
    assert [smallest_effect(n) for n in (3, 5, 10)] == pytest.approx(
        [3.26404355, 1.68199697, 0.996001371], abs=1e-8
    )


def test_seeds_required_golden():
    assert [seeds_required(dz) for dz in (0.3, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 4)] == [90, 34, 15, 10, 8, 6, 5, 4, 3]
    assert seeds_required(0.01, cap=500) is None


def test_equivalence_power_against_simulated_figures():
    found = [power_equivalence(2 * 3**0.5, 2), power_equivalence(2 * 5**0.5, 4), power_equivalence(10**0.5, 9)]
    assert found == pytest.approx([0.558, 0.950, 0.795], abs=1e-3)
    assert [seeds_required(margin, aim="equivalent") for margin in (1, 0.5)] == [11, 36]


def test_one_sided_power_by_simulation():
    rng = np.random.default_rng(2)
    d = rng.normal(size=(20_000, 6))
    t = (d.mean(1) + 1.0) / (d.std(1, ddof=1) / 6**0.5)
    assert power_one_sided(6**0.5, 5) == pytest.approx(np.mean(t > 2.015), abs=0.012)


def test_upper_limit_of_the_sd():
    assert [upper_sd_factor(n) for n in (3, 5, 10)] == pytest.approx([2.12, 1.56, 1.29], abs=5e-3)


def test_more_seeds_by_hand():
    """dz = .5/.6245 = .80 needs 15 seeds, 12 more than 3; the upper sd 2.117 times as large needs 57."""
    more = more_seeds(3, 0.5, 0.6245, aim="difference", alpha=0.05)
    assert (more.k, more.k_upper, more.settles) == (12, 54, True)
    assert more_seeds(3, 0.001, 1.0, aim="difference", alpha=0.05).k is None
    assert more_seeds(50, 5.0, 1.0, aim="difference", alpha=0.05).k == 1
    assert more_seeds(3, 0.0, 1.0, aim="difference", alpha=0.05).k is None


def test_item_noise_that_seeds_cannot_remove():
    v_item = 0.01**2
    assert not more_seeds(5, 0.0279, 0.02, aim="difference", alpha=0.05, v_item=v_item, groups=500).settles
    above = more_seeds(5, 0.04, 0.05, aim="difference", alpha=0.05, v_item=v_item, groups=500)
    assert above.settles
    assert above.k is not None
    assert above.k > 10


def test_crossed_requirement_is_its_inequality():
    from scipy.stats import t

    n = seeds_required_crossed(0.05, 0.06, 1e-4, 300, cap=1000)
    assert n is not None
    for at, enough in ((n, True), (n - 1, False)):
        df = crossed_df(0.06**2 / at, 1e-4, at, 300)
        ratio = 0.05 / (0.06**2 / at + 1e-4) ** 0.5
        assert (ratio >= t.ppf(0.975, df) + t.ppf(0.8, df)) == enough


def test_crossed_df_limits():
    assert crossed_df(1.0, 0.0, 5, 100) == pytest.approx(4)
    assert crossed_df(0.0, 1.0, 5, 100) == pytest.approx(99)


def test_reachable():
    five = reachable(5)
    assert (five.test, five.smallest_p, five.sign_flip_floor) == ("paired t", 0.0, 0.0625)
    assert five.smallest_effect == pytest.approx(1.682, abs=1e-3)
    eight = reachable(8, sd=0.01)
    assert (eight.test, eight.smallest_p, eight.can_decide) == ("exact sign-flip", 0.0078125, True)
    assert eight.smallest_difference == pytest.approx(0.01156, abs=1e-5)
    assert reachable(8, 5).test == "paired t"
    assert reachable(8, 5).smallest_effect > eight.smallest_effect  # type: ignore[operator]
    for n in (0, 1):
        assert not reachable(n).can_decide
        assert reachable(n).smallest_effect is None
