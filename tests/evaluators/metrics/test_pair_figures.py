"""Figures of sentence pairs against arithmetic, other programs, and the properties that define them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn import linear_model, metrics

from corpora.sources.shared_words import dice, jaccard
from evaluators.metrics.alignment import squared_distances, uniformity
from evaluators.metrics.pair_decisions import average_precision, decision_scores
from evaluators.metrics.scores import Items
from evaluators.metrics.sts import metric_names, sts_scores
from evaluators.metrics.suppression import partial_spearman, suppression_scores


def items(count: int) -> Items:
    return Items([str(row) for row in range(count)], [str(row) for row in range(count)])


def values(scores: list) -> dict[str, float]:
    return {score.metric: score.value for score in scores}


def test_three_readings_of_a_year():
    """Golden numbers of the DefSent specification (numpy, cross-checked in float64 torch)."""
    cosines, gold = np.array([0.9, 0.1, 0.5, 0.5, 0.2, 0.8, 0.3]), np.array([5.0, 0, 3, 2, 1, 4, 4])
    found = values(sts_scores("x", items(7), np.array(["a"] * 4 + ["b"] * 3), cosines, gold))
    assert 100 * found["x/spearman"] == pytest.approx(83.63636364)
    assert 100 * found["x/mean"] == pytest.approx(90.73543509)
    assert 100 * found["x/weighted_mean"] == pytest.approx(91.32584862)
    assert metric_names("x", ["a", "b"]) == dict.fromkeys(found, True)


def test_one_subset_has_one_reading_and_a_constant_subset_no_mean():
    gold = np.array([1.0, 2, 3, 4])
    assert set(values(sts_scores("x", items(4), np.repeat("a", 4), gold, gold))) == {"x/spearman"}
    assert metric_names("x", ["a"]) == {"x/spearman": True}
    found = values(sts_scores("x", items(4), np.array(["a", "a", "b", "b"]), np.array([0, 1, 2, 2.0]), gold))
    assert set(found) == {"x/spearman", "x/a/spearman"}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (
            "The motocross rider is wearing blue and black pants",
            "Blue and black pants are being worn by the motocross rider",
            0.538461538,
        ),
        ("Broccoli are being cut by a woman", "A woman is cutting broccoli", 0.333333333),
        ("Don't!", "don't", 1.0),
        ("…", "!", 1.0),
        ("", "word", 0.0),
    ],
)
def test_overlaps(a: str, b: str, expected: float):
    """The first two: golden numbers 9 and 10 of the SAN specification."""
    assert jaccard(a, b) == jaccard(b, a) == pytest.approx(expected, abs=1e-9)
    assert dice(a, b) == dice(b, a) == pytest.approx(2 * expected / (1 + expected), abs=1e-9)


def test_partial_spearman_is_the_correlation_of_residuals_of_ranks():
    x, y, z = np.random.default_rng(0).normal(size=(3, 200)) + np.random.default_rng(1).normal(size=200)
    ranks = [stats.rankdata(column) for column in (x, y, z)]
    model = linear_model.LinearRegression()
    left, right = (rank - model.fit(ranks[2][:, None], rank).predict(ranks[2][:, None]) for rank in ranks[:2])
    assert partial_spearman(x, y, z) == pytest.approx(np.corrcoef(left, right)[0, 1])
    assert math.isnan(partial_spearman(x, y, x))


def test_suppression_slices_by_hand():
    """Pairs 0 and 1 are alike with little overlap, pair 2 unlike with much; of 3, 4 and 5 one side is missing."""
    cosines, gold = np.array([0.8, 0.6, 0.5, 0.6, 0.1, 0.2]), np.array([4.0, 5.0, 2.0, 3.0, 4.0, 2.0])
    overlaps = np.array([0.1, 0.59, 0.6, 0.9, 0.6, 0.59])
    scores = suppression_scores("s", items(6), cosines, gold, overlaps, np.array([0.1, 0.5]))
    found = values(scores)
    assert found["s/hi_lo/n"] == 2
    assert found["s/hi_lo/mean"] == pytest.approx(0.7)
    assert found["s/hi_lo/standardised"] == pytest.approx(2)  # random: mean .3, sd .2
    assert found["s/hi_lo/near"] == 0.5
    assert found["s/hi_lo/sd"] == pytest.approx(math.sqrt(0.02))
    assert found["s/lo_hi/mean"] == 0.5
    assert not found.keys() & {"s/lo_hi/sd", "s/lo_hi/mode"}  # of one pair
    assert found["s/partial"] == pytest.approx(partial_spearman(cosines, overlaps, gold))
    better = {score.metric.removeprefix("s/"): score.larger_is_better for score in scores}
    assert all(better[f"hi_lo/{figure}"] for figure in ("mean", "standardised", "near"))
    assert not any(better[f"lo_hi/{figure}"] for figure in ("mean", "standardised", "near"))
    assert not better["hi_lo/sd"]
    assert not better["partial"]


def test_a_slice_is_described_by_its_quantiles_and_by_where_its_density_peaks():
    rng = np.random.default_rng(3)
    cosines = np.concatenate([rng.normal(0.7, 0.05, 60), rng.normal(0.2, 0.1, 40)])
    found = values(
        suppression_scores("s", items(100), cosines, np.full(100, 5.0), np.zeros(100), np.array([0, 1]))
    )
    low, first, middle, third, high = np.percentile(cosines, [5, 25, 50, 75, 95])
    described = {"n": 100, "median": middle, "iqr": third - first, "q05": low, "q95": high}
    assert {name: found[f"s/hi_lo/{name}"] for name in described} == pytest.approx(described)
    peak = optimize.minimize_scalar(lambda at: -stats.gaussian_kde(cosines)(at)[0], bounds=(0.5, 0.9)).x
    assert found["s/hi_lo/mode"] == pytest.approx(peak, abs=1 / 511)  # half a step of 512 points from -1 to 1
    assert "s/partial" not in found  # gold is constant
    same = values(
        suppression_scores("s", items(3), np.full(3, 0.5), np.array([4.0, 4, 5]), np.zeros(3), np.array([0, 1]))
    )
    assert same["s/hi_lo/median"] == 0.5
    assert not same.keys() & {"s/hi_lo/sd", "s/hi_lo/mode", "s/partial"}


def test_a_standard_deviation_keeps_its_pairs():
    """So that how much two arms differ in it is judged like any other figure."""
    cosines, gold = np.array([0.9, 0.7, 0.5]), np.array([4.0, 5.0, 4.5])
    scores = suppression_scores("s", items(3), cosines, gold, np.zeros(3), np.array([-1.0, 1.0]))
    (spread,) = (score for score in scores if score.metric == "s/hi_lo/sd")
    assert (spread.aggregate, spread.values.tolist(), spread.larger_is_better) == ("sd", [0.9, 0.7, 0.5], False)
    assert spread.value == pytest.approx(0.2)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_average_precision_agrees_with_sklearn_also_where_scores_tie(rows: list[tuple[int, bool]]):
    scores, labels = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], float)
    if labels.sum():
        assert average_precision(scores, labels) == pytest.approx(metrics.average_precision_score(labels, scores))
    else:
        assert math.isnan(average_precision(scores, labels))


def test_the_threshold_comes_from_other_pairs():
    known = (np.array([0.9, 0.8, 0.2]), np.array([1.0, 1.0, 0.0]))
    found = decision_scores("d", items(3), np.array([0.7, 0.6, 0.4]), np.array([1.0, 0.0, 0.0]), known)
    assert values(found) == {"d/accuracy": pytest.approx(2 / 3), "d/threshold": pytest.approx(0.5)}
    assert found[0].values.tolist() == [1.0, 0.0, 1.0]


def test_uniformity_by_hand_and_its_bounds():
    """Two opposite rows lie 2 apart: log exp(-2·4); equal rows: log 1. Lengths do not matter."""
    assert uniformity(np.array([[1.0, 0], [-3.0, 0]])) == pytest.approx(-8)
    assert uniformity(np.tile([[1.0, 2.0]], (3, 1))) == pytest.approx(0)
    rows = np.random.default_rng(2).normal(size=(1500, 6))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    apart = ((units[:, None] - units[None]) ** 2).sum(-1)[np.triu_indices(1500, 1)]
    assert uniformity(rows) == pytest.approx(math.log(np.exp(-2 * apart).mean()))
    with pytest.raises(ValueError, match="two rows"):
        uniformity(rows[:1])


def test_squared_distance_of_unit_vectors():
    assert squared_distances(np.array([1.0, 0.0, -1.0])).tolist() == [0.0, 2.0, 4.0]
