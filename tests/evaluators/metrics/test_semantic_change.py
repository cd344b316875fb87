"""Golden numbers from an independent numpy script; the pairwise mean against all pairs, one by one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from evaluators.metrics.semantic_change import (
    average_pairwise_distance,
    change_scores,
    metric_names,
    prototype_distance,
)

FIRST = np.array([[1, 0], [0.8, 0.6]])
SECOND = np.array([[0, 1], [0.6, 0.8], [1, 1]])


def test_golden():
    assert average_pairwise_distance(FIRST, SECOND) == pytest.approx(0.357157288)
    assert prototype_distance(FIRST, SECOND) == pytest.approx(0.254758686)


def test_pairwise_distance_is_the_mean_over_all_pairs():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(7, 5)), rng.normal(size=(4, 5)) + 1
    assert average_pairwise_distance(first, second) == pytest.approx(cdist(first, second, "cosine").mean())
    assert average_pairwise_distance(first, second) == pytest.approx(average_pairwise_distance(second, first))


def test_prototypes_are_means_of_raw_vectors():
    """(4, 0) and (0, 1) average to (2, .5): nearer to the x axis than the mean of their directions."""
    long = np.array([[4.0, 0.0], [0.0, 1.0]])
    axis = np.array([[1.0, 0.0]])
    assert prototype_distance(long, axis) == pytest.approx(1 - 2 / np.hypot(2, 0.5))
    assert average_pairwise_distance(long, axis) == pytest.approx(0.5)


def test_scores_are_rank_correlations_over_words():
    rng = np.random.default_rng(2)
    uses = [(rng.normal(size=(3, 4)), rng.normal(size=(5, 4)) + shift) for shift in (0, 1, 2, 3)]
    gold = np.array([0.0, 0.0, 0.4, 0.9])  # words without change are tied
    scores = change_scores("lscd/en", ["a", "b", "c", "d"], uses, gold)
    assert [score.metric for score in scores] == list(metric_names("lscd/en"))
    for score, measure in zip(scores, (average_pairwise_distance, prototype_distance), strict=True):
        assert score.values == pytest.approx([measure(*pair) for pair in uses])
        assert score.value == pytest.approx(spearmanr(score.values, gold).statistic)
        assert score.group_ids == score.item_ids == ["a", "b", "c", "d"]


def test_a_measure_that_is_the_same_for_every_word_has_no_score():
    point = np.array([[1.0, 0.0]])
    assert change_scores("lscd/en", ["a", "b"], [(point, point), (point, 2 * point)], np.array([0.0, 1.0])) == []


def test_vectors_and_gold_that_are_no_numbers_are_refused():
    uses = [(FIRST, SECOND), (SECOND, np.array([[np.nan, 1.0]]))]
    with pytest.raises(ValueError, match="vectors: nan at 0, 0"):
        change_scores("p", ["a", "b"], uses, np.array([0.1, 0.9]))
    with pytest.raises(ValueError, match="p: gold: nan at 1"):
        change_scores("p", ["a", "b"], [(FIRST, FIRST)] * 2, np.array([0.1, np.nan]))
