"""Golden numbers come from an independent numpy script; the martingale property is checked by quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from evaluators.significance.sequential import (
    Anytime,
    Sequential,
    confidence_sequence,
    e_at_t,
    e_values,
    level_of_t,
    running_moments,
    seeds_until,
    smallest_anytime_p,
)

D7 = np.array([0.012, 0.008, -0.003, 0.015, 0.006, 0.011, 0.009])


def test_golden():
    expected = [1, 1.93792558, 0.775181154, 1.41609922, 2.21046807, 4.92386165, 11.2208554]
    assert e_values(D7, 2.0) == pytest.approx(expected, abs=1e-6)
    evidence = Anytime(tuple(D7), 2.0)
    assert evidence.p == pytest.approx(0.0891197657, abs=1e-9)
    assert evidence.interval(0.05) == pytest.approx((-0.00127120275, 0.0178426313), abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_the_mean_of_e_under_the_null_is_one(n: int):
    """∫ E_n(t) f(t) dt = 1 with f the density of Student's t; t = tan(u) brings in the tails."""
    mass, _ = integrate.quad(
        lambda u: e_at_t(np.tan(u), n, 2.0) * stats.t.pdf(np.tan(u), n - 1) / np.cos(u) ** 2,
        -np.pi / 2,
        np.pi / 2,
        epsabs=1e-13,
        limit=500,
    )
    assert mass == pytest.approx(1, abs=1e-9)


def test_e_of_the_data_is_e_of_their_t():
    d = np.random.default_rng(1).normal(0.4, 1, size=12)
    t = [stats.ttest_1samp(d[:k], 0).statistic for k in range(2, 13)]
    assert e_values(d, 2.0)[1:] == pytest.approx([e_at_t(x, k, 2.0) for k, x in enumerate(t, start=2)])


def test_widths_and_thresholds():
    """Half-widths in sds, and the |t| at which 1/E = .05, as tabulated independently."""
    d = np.random.default_rng(2).normal(size=50)
    low, high = confidence_sequence(d, 2.0)
    sd = running_moments(d)[1]
    assert np.isinf(high[:3]).all()
    at = np.array([4, 5, 6, 8, 10, 20, 50])
    half = (high - low)[at - 1] / 2 / sd[at - 1]
    assert half == pytest.approx([6.03, 2.61, 1.97, 1.46, 1.22, 0.786, 0.484], rel=5e-3)
    for n, t in zip(at, [12.1, 5.83, 4.82, 4.14, 3.87, 3.52, 3.42], strict=True):
        assert e_at_t(t, int(n), 2.0) == pytest.approx(20, rel=0.03)


def test_the_sequence_holds_what_the_e_process_does_not_reject():
    d = np.random.default_rng(3).normal(0.3, 1, size=15)
    low, high = confidence_sequence(d, 2.0)
    for null in np.linspace(-2, 2, 41):
        kept = e_values(d, 2.0, null=float(null)) < 20
        assert (kept == ((low <= null) & (null <= high))).all()


def test_equal_deltas_never_stop_a_study():
    assert (e_values(np.full(30, 0.25), 2.0) == 1).all()
    assert Anytime((0.1,) * 30, 2.0).p == 1.0
    rounded = np.array([0.8, 0.7, 0.6]) - np.array([0.7, 0.6, 0.5])
    assert (e_values(rounded, 2.0) == 1).all()


@pytest.mark.parametrize("n", [230, 400, 1000])
def test_evidence_beyond_all_numbers_is_the_largest_one(n: int) -> None:
    """An effect of 20 sds; without a warning, which would be an error here."""
    deltas = np.random.default_rng(0).normal(20, 1, n)
    path = e_values(deltas, 2.0)
    assert np.isfinite(path).all()
    assert (np.diff(path) >= 0).all()
    assert 0 < Anytime(tuple(deltas), 2.0).p < 1e-260


def test_mirror_scale_and_shift():
    d = np.random.default_rng(4).normal(0.5, 1, size=12)
    assert e_values(-7 * d, 2.0) == pytest.approx(e_values(d, 2.0))
    assert e_values(d + 3, 2.0, null=3.0) == pytest.approx(e_values(d, 2.0))
    stacked = e_values(np.stack([d, d[::-1], 1e-14 * d]), 2.0)  # each row beside others of any size
    assert stacked == pytest.approx(np.stack([e_values(row, 2.0) for row in (d, d[::-1], d)]))


def test_anytime_equivalence_is_the_running_interval_inside_the_margin():
    rng = np.random.default_rng(6)
    seen = set()
    for _ in range(100):
        evidence = Anytime(tuple(rng.normal(rng.uniform(-0.5, 0.5), 0.4, size=12)), 2.0)
        low, high = evidence.interval(0.05)
        inside = -0.5 < low <= high < 0.5
        assert (evidence.p_equivalent(0.5) <= 0.05) == inside
        assert (evidence.p_above(0.1) <= 0.05) == (low > 0.1)
        assert (evidence.p_interval_below(0.1) <= 0.05) == (high < 0.1)
        assert evidence.p_above(9.0) == evidence.p_below(-9.0) == 1.0
        seen.add(inside)
    assert seen == {True, False}


def test_optional_stopping_keeps_its_level_where_repeated_t_does_not():
    d = np.random.default_rng(8).normal(size=(500, 50))
    mean, sd = running_moments(d)
    n = np.arange(2, 51)
    t = np.abs(mean[:, 1:] / sd[:, 1:] * np.sqrt(n))
    assert np.mean((t > stats.t.ppf(0.975, n - 1)).any(1)) > 0.25
    assert np.mean((e_values(d, 2.0) >= 20).any(1)) < 0.08


def test_about_when_it_will_stop():
    stop = seeds_until(1.0, 1.0, tau2=2.0, level=0.05, n_max=50)
    assert stop is not None
    assert 11 <= stop <= 15  # the median stop of simulated studies is 12
    assert seeds_until(0.0, 1.0, tau2=2.0, level=0.05, n_max=50) is None
    assert [seeds_until(1.0, 1.0, tau2=2.0, level=0.05, n_max=most) for most in (stop, stop - 1)] == [stop, None]


def test_declaration_is_checked():
    with pytest.raises(ValueError, match="tau2"):
        Sequential(tau2=0.0)


@pytest.mark.parametrize("n", [2, 4, 8, 20])
def test_no_t_reaches_beyond_the_smallest_anytime_p(n: int) -> None:
    assert 1 / e_at_t(1e9, n, 2.0) == pytest.approx(smallest_anytime_p(n, 2.0), rel=1e-6)
    assert smallest_anytime_p(4, 2.0) == pytest.approx(1 / 27)


@pytest.mark.parametrize("n", [4, 20, 1000])
def test_the_level_at_which_a_t_test_rejects_where_the_e_process_does(n: int) -> None:
    """With a thousand seeds too, where the largest E is beyond what a number holds."""
    level = level_of_t(n, 2.0, 0.05)
    assert e_at_t(stats.t.isf(level / 2, n - 1), n, 2.0) == pytest.approx(20)
