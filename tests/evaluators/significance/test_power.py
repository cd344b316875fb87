"""Golden numbers come from an independent numpy script; the oracle is statsmodels' TTestPower."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from evaluators.significance.level import ALPHA
from evaluators.significance.power import (
    NODES,
    Noise,
    halved,
    more_seeds,
    power,
    power_paired_t,
    seeds_required,
    smallest_effect,
    upper_sd_factor,
)
from evaluators.significance.seed_tests import critical

ITEMS = Noise(sd=0.05, item=0.01, cell=0.02, groups=300)


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


@pytest.mark.parametrize("root", [number / 41 for number in range(1, 41, 4)])
def test_halving_asks_less_and_ends_where_plain_bisection_does(root):
    """To the last digit, also of a function that is all but level on both sides."""
    asked = []

    def rising(x):
        asked.append(x)
        return np.tanh(9 * (x - root)) + 0.1 * (x - root)

    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) >= 0 else (middle, high)
    steps = len(asked)
    assert halved(rising, 0.0, 1.0, within=1e-12) == (low + high) / 2
    assert len(asked) - steps < 0.6 * steps
    for near in ((root * (1 - 1e-6), root * (1 + 1e-6)), (root / 4, root / 2)):  # where it is, and where not
        assert halved(rising, 0.0, 1.0, within=1e-12, near=near) == (low + high) / 2


@pytest.mark.parametrize("alpha", [0.01, 0.009])  # at 2 seeds few nodes put the second below 64, where it is not
@pytest.mark.parametrize("noise", [Noise(), ITEMS, Noise(sd=0.01, item=0.03, groups=2)])
@pytest.mark.parametrize("n", [2, 8, 20, 1000])
def test_smallest_effect_is_where_the_power_is_reached(n, noise, alpha):
    """By the power itself, also where few nodes are far off."""
    found = smallest_effect(n, alpha, noise=noise)
    assert power(n, noise, effect=found * (1 - 1e-9), alpha=alpha) < 0.8
    assert power(n, noise, effect=found * (1 + 1e-9), alpha=alpha) > 0.8


@pytest.mark.parametrize(("n", "sd"), [(6, 0.0103), (20, 0.0131), (50, 0.02)])
def test_smallest_effect_asks_for_the_whole_power_few_times(n, sd, monkeypatch):
    asked = []

    def counted(*given, nodes, **how):
        asked.append(nodes)
        return power(*given, nodes=nodes, **how)

    monkeypatch.setattr("evaluators.significance.power.power", counted)
    smallest_effect(n, 1e-4, noise=Noise(sd=sd, item=0.0009, cell=0.002, groups=2000))
    assert asked.count(NODES) <= 5
    assert len(asked) <= 18


def test_smallest_effects_golden():
    found = [smallest_effect(n) for n in (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)]
    assert found == pytest.approx(
        [11.55, 3.264, 2.128, 1.682, 1.435, 1.156, 0.996, 0.778, 0.660, 0.529, 0.404], abs=6e-4
    )
    assert [smallest_effect(n) for n in (3, 5, 10)] == pytest.approx(
        [3.26404355, 1.68199697, 0.996001371], abs=1e-8
    )


def test_more_claims_and_noisy_items_take_a_larger_effect():
    assert smallest_effect(8, ALPHA / 5) > smallest_effect(8)
    of_seeds = smallest_effect(8, noise=Noise(sd=0.01))
    assert of_seeds == pytest.approx(0.01156, abs=1e-5)
    assert smallest_effect(8, noise=Noise(sd=0.01, item=0.01, groups=100)) > 2 * of_seeds


def test_seeds_required_golden():
    found = [seeds_required(Noise(), effect=dz) for dz in (0.3, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 4)]
    assert found == [90, 34, 15, 10, 8, 6, 5, 4, 3]
    assert [seeds_required(Noise(), effect=12.0), seeds_required(Noise(), effect=11.0)] == [2, 3]
    assert [seeds_required(Noise(), effect=0.3, cap=cap) for cap in (90, 89)] == [90, None]
    bound = smallest_effect(10_000)
    assert [seeds_required(Noise(), effect=bound * off) for off in (1.000001, 0.999999)] == [10_000, None]
    assert seeds_required(Noise(), effect=0.01, cap=500) is None
    assert seeds_required(Noise(), effect=0.0) is None


def test_equivalence_power_against_simulated_figures():
    found = [power(n, Noise(), aim="equivalent", margin=margin) for n, margin in ((3, 2), (5, 2), (10, 1))]
    assert found == pytest.approx([0.558, 0.950, 0.795], abs=1e-3)
    assert [seeds_required(Noise(), aim="equivalent", margin=margin) for margin in (1, 0.5)] == [11, 36]


def test_one_sided_power_by_simulation():
    rng = np.random.default_rng(2)
    d = rng.normal(size=(20_000, 6))
    t = (d.mean(1) + 1.0) / (d.std(1, ddof=1) / 6**0.5)
    assert power(6, Noise(), aim="not worse", margin=1.0) == pytest.approx(np.mean(t > 2.015), abs=0.012)


def test_upper_limit_of_the_sd():
    assert [upper_sd_factor(n) for n in (3, 5, 10)] == pytest.approx([2.12, 1.56, 1.29], abs=5e-3)


@pytest.mark.parametrize(
    ("aim", "effect", "margin"),
    [("difference", 0.09, 0.0), ("equivalent", 0.01, 0.1), ("not worse", -0.02, 0.1)],
)
def test_power_with_items_by_simulation(aim, effect, margin):
    """5 seeds x 300 items: both variances are drawn, and the crossed interval is laid around the drawn mean."""
    n, size = 5, 20_000
    rng = np.random.default_rng(3)
    v_seed, v_cell = ITEMS.sd**2 / n, ITEMS.cell**2 / n
    v_item = ITEMS.item**2 + v_cell
    mean = rng.normal(effect, (v_seed + v_item - v_cell) ** 0.5, size)
    seen_seed, seen_item = v_seed * rng.chisquare(n - 1, size) / (n - 1), v_item * rng.chisquare(299, size) / 299
    variance = np.maximum.reduce([seen_seed + seen_item - v_cell, seen_seed, seen_item])
    share = seen_item / (seen_seed + seen_item)
    half = variance**0.5 * critical(0.025 if aim == "difference" else 0.05, n - 1, 299, share)
    shown = {
        "difference": np.abs(mean) > half,
        "equivalent": (mean - half > -margin) & (mean + half < margin),
        "not worse": mean - half > -margin,
    }[aim]
    found = power(n, ITEMS, aim=aim, effect=effect, margin=margin)
    assert found == pytest.approx(shown.mean(), abs=0.015)
    assert 0.2 < found < 0.95  # the case says something


def test_power_has_no_unit():
    for scale in (1e-200, 1e200):
        noise = Noise(sd=scale, item=scale / 5, cell=scale / 10, groups=80)
        assert power(4, noise, effect=2 * scale) == pytest.approx(
            power(4, Noise(sd=1, item=0.2, cell=0.1, groups=80), effect=2)
        )


def test_more_seeds_by_hand():
    """dz = .5/.6245 = .80 needs 15 seeds, 12 more than 3; the upper sd 2.117 times as large needs 57."""
    more = more_seeds(3, Noise(sd=0.6245), aim="difference", effect=0.5, alpha=0.05)
    assert (more.k, more.k_upper, more.settles) == (12, 54, True)
    assert more_seeds(3, Noise(), aim="difference", effect=0.001, alpha=0.05).k is None
    assert more_seeds(50, Noise(), aim="difference", effect=5.0, alpha=0.05).k == 1
    corrected = next(n for n in range(4, 99) if TTestPower().power(0.5 / 0.6245, n, 0.01) >= 0.8)
    assert more_seeds(3, Noise(sd=0.6245), aim="difference", effect=0.5, alpha=0.01).k == corrected - 3
    needed = seeds_required(Noise(), effect=0.15)
    assert needed is not None
    most, over = (more_seeds(needed - k, Noise(), aim="difference", effect=0.15, alpha=0.05) for k in (200, 201))
    assert (most.k, over.k) == (200, None)  # "more than 200"
    assert more_seeds(3, Noise(), aim="difference", effect=0.0, alpha=0.05).k is None


def test_more_seeds_at_the_observed_difference():
    """A margin of 1 sd takes 11 seeds where the arms are equal; half a sd off centre, as many as half the margin."""
    centred, off = (
        more_seeds(4, Noise(), aim="equivalent", effect=effect, margin=1.0, alpha=0.05) for effect in (0.0, 0.5)
    )
    assert centred.k == 11 - 4
    assert off.k is not None
    assert off.k == (seeds_required(Noise(), aim="not worse", margin=0.5) or 0) - 4  # one side alone is near
    assert more_seeds(4, Noise(), aim="equivalent", effect=1.1, margin=1.0, alpha=0.05).k is None


def test_item_noise_that_seeds_cannot_remove():
    """2.80 standard errors of the items at .05 and .80, from the normal law; a little more from 499 df."""
    noise = Noise(sd=0.02, item=0.01, groups=500)
    assert not more_seeds(5, noise, aim="difference", effect=0.0279, alpha=0.05).settles
    above = more_seeds(5, Noise(sd=0.05, item=0.01, groups=500), aim="difference", effect=0.04, alpha=0.05)
    assert above.settles
    assert above.k is not None
    assert above.k > 10


def test_the_items_variance_is_known_from_so_many_as_is_said():
    few, all_of = (Noise(sd=0.02, item=0.01, groups=203, item_df=df) for df in (2, 202))
    assert smallest_effect(8, noise=all_of) == smallest_effect(8, noise=Noise(sd=0.02, item=0.01, groups=203))
    assert smallest_effect(8, noise=few) == smallest_effect(8, noise=Noise(sd=0.02, item=0.01, groups=3))
