"""Metrics against scipy and scikit-learn, by hand where those have no opinion."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evaluators.metrics.item_metrics import (
    aggregate,
    balanced_accuracy,
    f1,
    hits,
    mid_ranks,
    pearson,
    placements,
    reciprocal,
    roc_auc,
    score_of_items,
    spearman,
)
from evaluators.significance.item_bootstrap import METRICS

# few distinct values, so that ties are the rule
COLUMN = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=st.integers(-4, 4).map(lambda v: v / 4)),
        arrays(np.int64, n, elements=st.integers(0, 1)),
    )
)


def test_auc_with_ties_by_hand():
    """.9 beats .5 and .1; each .5 ties with .5 and beats .1: (1 + 1 + ½ + 1 + ½ + 1) / 6."""
    scores, labels = np.array([0.9, 0.5, 0.5, 0.5, 0.1]), np.array([1, 1, 1, 0, 0])
    assert roc_auc(scores, labels) == pytest.approx(5 / 6, abs=1e-9)


@given(COLUMN)
def test_auc_is_scikit_learns_and_flips_with_the_labels(column):
    scores, labels = column
    if len(set(labels)) < 2:
        assert math.isnan(roc_auc(scores, labels))
        return
    assert roc_auc(scores, labels) == pytest.approx(sklearn.metrics.roc_auc_score(labels, scores))
    assert roc_auc(scores, labels) + roc_auc(scores, 1 - labels) == pytest.approx(1)
    assert roc_auc(np.exp(scores), labels) == pytest.approx(roc_auc(scores, labels))  # only the order counts


@given(COLUMN)
def test_placements_are_shares_of_the_other_class(column):
    """Their mean over the items of either label is the AUC."""
    scores, labels = column
    if len(set(labels)) < 2:
        return
    placed = placements(scores, labels)
    for score, label, place in zip(scores, labels, placed, strict=True):
        ahead = (score - scores[labels != label]) * (1 if label else -1)
        assert place == pytest.approx(((ahead > 0) + (ahead == 0) / 2).mean())
    for label in (0, 1):
        assert placed[labels == label].mean() == pytest.approx(roc_auc(scores, labels))


@given(COLUMN)
def test_correlations_are_scipys(column):
    values, other = column[0], column[1] + np.arange(len(column[0])) % 3
    if np.ptp(values) == 0 or np.ptp(other) == 0:
        assert math.isnan(spearman(other, values))
        assert math.isnan(pearson(other, values))
        return
    assert spearman(other, values) == pytest.approx(scipy.stats.spearmanr(other, values).statistic, abs=1e-12)
    assert pearson(other, values) == pytest.approx(scipy.stats.pearsonr(other, values).statistic, abs=1e-12)
    assert spearman(values, other) == pytest.approx(spearman(other, values), abs=1e-12)


def test_a_correlation_does_not_rest_on_where_zero_is():
    """Near 2^53 neighbours lie 1 or 2 apart, and a mean is rounded to one of them."""
    steps, other = np.array([0.0, 2, 2, 4, 8, 6, 4]), np.array([0.3, -1.2, 0.4, 0.1, 2.0, 0.7, -0.2])
    assert pearson(steps + 2.0**53, other) == pytest.approx(pearson(steps, other), abs=1e-12)
    assert pearson(other, steps - 2.0**53) == pytest.approx(pearson(steps, other), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_line_correlates_perfectly_and_not_more(seed):
    """Rounding alone would make it 1.0000000000000002 for some."""
    x = np.random.default_rng(seed).normal(size=(10, 20))
    for row in x:
        assert 1 - 1e-12 < pearson(row, 3 * row + 1) <= 1
        assert -1 <= pearson(row, 1 - 3 * row) < 1e-12 - 1


@given(COLUMN)
def test_mid_ranks_are_scipys(column):
    assert np.array_equal(mid_ranks(column[0]), scipy.stats.rankdata(column[0]))


@given(COLUMN)
def test_decisions_are_scored_as_scikit_learn_does(column):
    values, labels = column
    decided = (values > 0.5).astype(int)
    if len(set(labels)) < 2:
        assert math.isnan(balanced_accuracy(values, labels))
    else:
        expected = sklearn.metrics.balanced_accuracy_score(labels, decided)
        assert balanced_accuracy(values, labels) == pytest.approx(expected)
    if decided.any() or labels.any():
        assert f1(values, labels) == pytest.approx(sklearn.metrics.f1_score(labels, decided, zero_division=0))
    else:
        assert math.isnan(f1(values, labels))


def test_hits_and_reciprocal_ranks():
    ranks = np.array([1, 2, 10, 11])
    assert hits(ranks, 10).tolist() == [1, 1, 1, 0]
    assert reciprocal(ranks).tolist() == [1, 0.5, 0.1, 1 / 11]


@pytest.mark.parametrize("kind", ["auc", "spearman", "pearson", "balanced_accuracy", "f1"])
def test_gold_is_asked_for(kind):
    with pytest.raises(ValueError, match="no gold"):
        aggregate(kind, np.array([1.0, 0.0]))


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="no items"):
        aggregate("mean", np.array([]))
    with pytest.raises(ValueError, match=r"no aggregate 'median': mean, .*, sd$"):
        aggregate("median", np.array([1.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="0 or 1"):
        roc_auc(np.array([0.1, 0.2]), np.array([1, 2]))


@pytest.mark.parametrize("metric", [pearson, spearman, roc_auc, balanced_accuracy, f1])
def test_columns_that_do_not_belong_together_are_refused(metric):
    column = np.array([0.0, 1.0])
    for wrong in (np.array([1.0]), np.array([1.0, 0.0, 1.0]), np.float64(1.0)):
        with pytest.raises(ValueError, match=r"two columns of one length, not \(2,\) and \("):
            metric(column, wrong)
    with pytest.raises(ValueError, match=r"one length, not \(2, 2\) and \(2, 2\)"):
        metric(np.eye(2), np.eye(2))
    for bad in (math.nan, math.inf):
        for columns in ((column, np.array([0.0, bad])), (np.array([bad, 1.0]), column)):
            with pytest.raises(ValueError, match="not finite"):
                metric(*columns)


@pytest.mark.parametrize(
    ("kind", "values", "gold"),
    [
        ("pearson", [1, 1, 1], [1, 2, 3]),
        ("pearson", [1, 2, 3], [1, 1, 1]),
        ("spearman", [1, 1, 1], [1, 2, 3]),
        ("spearman", [1], [1]),
        ("auc", [0.1, 0.2], [1, 1]),
        ("auc", [0.1, 0.2], [0, 0]),
        ("balanced_accuracy", [0, 1], [1, 1]),
        ("balanced_accuracy", [0, 1], [0, 0]),
        ("f1", [0, 0.5], [0, 0]),
        ("sd", [1], None),
    ],
)
def test_what_is_undefined_is_nan_without_a_warning(kind, values, gold):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(aggregate(kind, np.array(values), None if gold is None else np.array(gold)))


def test_correlations_of_nothing_are_nan():
    assert math.isnan(pearson(np.zeros(0), np.zeros(0)))
    assert math.isnan(spearman(np.zeros(0), np.zeros(0)))


@pytest.mark.parametrize("kind", ["mean", "auc", "spearman", "pearson", "balanced_accuracy", "f1", "sd"])
def test_a_score_is_the_aggregate_of_its_items(kind):
    values = np.array([0.9, 0.1, 0.8, 0.3], np.float32)
    score = score_of_items("m", kind, list("abcd"), list("aabb"), values, np.array([1, 0, 0, 1]))
    assert score.value == aggregate(score.aggregate, score.values, score.gold)
    assert score.values.dtype == np.float64  # what is stored is what was scored
    assert score.larger_is_better


@given(COLUMN)
def test_the_bootstrap_computes_the_same_metrics(column):
    """Two implementations: here from all items once, there from counts of items, here all taken once."""
    values, labels = column
    once = np.ones((len(values), 1), np.float32)
    for kind, weighted in METRICS.items():
        expected = aggregate(kind, values, labels.astype(float))
        assert weighted(values[None], labels.astype(float))(once).item() == pytest.approx(
            expected, nan_ok=True, abs=1e-9
        )


@pytest.mark.parametrize("exponent", [-150, -200, 150, 200])
def test_correlation_has_no_unit(exponent):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20)) + np.linspace(-1, 1, 20)
    expected = scipy.stats.pearsonr(a, b).statistic
    assert pearson(a * 10.0**exponent, b) == pytest.approx(expected)
    assert pearson(a * 10.0**exponent, b * 10.0**exponent) == pytest.approx(expected)
