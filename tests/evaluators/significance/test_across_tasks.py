"""Golden numbers come from an independent numpy script; IQM and unpaired PoI agree with rliable 1.2.0."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from evaluators.significance.across_tasks import (
    aso_bound,
    aso_violation,
    described,
    iqm,
    probability_of_improvement,
    summary,
    unpaired_improvement,
)
from evaluators.significance.comparisons import pair
from evaluators.significance.evidence import stream

X = np.array([[0.8, 0.6], [0.82, 0.64], [0.78, 0.66], [0.85, 0.61]])
Y = np.array([[0.79, 0.62], [0.8, 0.6], [0.78, 0.63], [0.81, 0.59]])


def test_golden():
    assert unpaired_improvement(X, Y) == pytest.approx(0.703125)
    assert (iqm(X), iqm(Y)) == pytest.approx((0.72, 0.705))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (5, 2), (7, 3), (20, 4, 3)])
def test_the_interquartile_mean_is_scipys_trimmed_mean(shape):
    scores = np.random.default_rng(2).normal(size=shape)
    assert (iqm(scores) == stats.trim_mean(scores.reshape(*shape[:-2], -1), 0.25, axis=-1)).all()


def test_a_report_waits_for_no_module_that_it_does_not_need():
    """scipy.stats takes most of a second to load."""
    code = "import sys, orchestration.report.forms, evaluators.significance.judge; print('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_paired_improvement_by_hand():
    """Six of eight pairs are above, one is a tie."""
    assert probability_of_improvement(X, Y) == pytest.approx(6.5 / 8)
    assert probability_of_improvement(X, Y) + probability_of_improvement(Y, X) == pytest.approx(1)


def test_interval_keeps_pairs_together():
    """Resampling both arms alike, the probability for an arm always above stays 1."""
    found = described(probability_of_improvement, X + 1, Y, rng=np.random.default_rng(0), resamples=200)
    assert (found.value, found.low, found.high, found.label) == (1.0, 1.0, 1.0, "descriptive")
    inner = described(iqm, X, rng=np.random.default_rng(0), resamples=500)
    assert inner.low < iqm(X) < inner.high


def test_aso_golden():
    a, b = np.array([0.81, 0.82, 0.78, 0.83, 0.79]), np.array([0.8, 0.81, 0.79, 0.8, 0.82])
    assert aso_violation(a, b) == pytest.approx(0.4)
    assert aso_violation(np.array([1.0, 5]), np.array([2.0, 3, 3])) == pytest.approx(1 / 3)


def test_aso_limits():
    a, b = np.array([3.0, 4, 5]), np.array([1.0, 2])
    assert (aso_violation(a, b), aso_violation(b, a), aso_violation(a, a)) == (0, 1, 0.5)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=7), rng.normal(size=5)
    assert aso_violation(a, b) + aso_violation(b, a) == pytest.approx(1)
    assert aso_violation(a, b) <= aso_bound(a, b, rng) <= 1


def test_aso_bound_lies_above_by_the_standard_error_of_a_bootstrap():
    """By 1.645 standard errors, the arms resampled apart. Six and five seeds have quantiles that are constant on each
    thirtieth, so that the violation is a sum over the middles of thirtieths."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(1.0, 0.3, size=6), rng.normal(size=5)
    middles = (np.arange(30) + 0.5) / 30
    drawn = []
    for _ in range(3_000):
        one, other = rng.choice(a, 6), rng.choice(b, 5)
        gap = np.quantile(other, middles, method="inverted_cdf") - np.quantile(one, middles, method="inverted_cdf")
        drawn.append((np.maximum(gap, 0) ** 2).sum() / (gap**2).sum())
    bound, violation = aso_bound(a, b, rng), aso_violation(a, b)
    assert violation < bound < 1
    assert bound - violation == pytest.approx(stats.norm.ppf(0.95) * np.std(drawn), rel=0.1)


def arms_of(task, seeds=4):
    """Column `task` of X and Y by seed; one seed more in the first task alone."""
    more = {4: 0.99} if task == 0 else {}
    return pair(*({**dict(enumerate(arm[:seeds, task].tolist())), **more} for arm in (X, Y)))


def test_a_summary_takes_the_seeds_that_are_complete_in_every_task():
    found = summary({"a": arms_of(0), "b": arms_of(1)}, "X/Y")
    assert (found.tasks, found.seeds, found.unpaired) == (("a", "b"), 4, pytest.approx(0.703125))
    assert (found.treatment_iqm.value, found.control_iqm.value) == pytest.approx((0.72, 0.705))
    assert found.improvement.value == pytest.approx(6.5 / 8)
    assert found.improvement.low <= 6.5 / 8 <= found.improvement.high
    assert found.aso == aso_bound(X.mean(1), Y.mean(1), stream("X/Y", "aso"))
    assert found == summary({"a": arms_of(0), "b": arms_of(1)}, "X/Y")


def test_nothing_to_summarise():
    assert summary({"a": arms_of(0)}, "X/Y") is None
    assert summary({"a": arms_of(0, 1), "b": arms_of(1, 1)}, "X/Y") is None
    assert summary({}, "X/Y") is None
    two = summary({"a": arms_of(0, 2), "b": arms_of(1, 2)}, "X/Y")
    assert two is not None
    assert two.seeds == 2


def test_many_draws_at_once_are_the_draws_one_by_one():
    rng = np.random.default_rng(4)
    x, y = rng.random((2, 6, 5, 3))
    for statistic, arms in ((iqm, (x,)), (probability_of_improvement, (x, y))):
        assert statistic(*arms) == pytest.approx([statistic(*(arm[k] for arm in arms)) for k in range(6)])
