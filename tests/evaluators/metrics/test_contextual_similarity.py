"""Golden numbers from an independent numpy script."""

import numpy as np
import pytest

from evaluators.metrics.contextual_similarity import context_scores, uncentred

GOLD = np.array([[2.88, 7.83], [7, 6.2], [4.1, 4], [1.5, 3.5], [5.5, 5]])
PREDICTED = np.array([[0.3, 0.62], [0.71, 0.7], [0.45, 0.4], [0.2, 0.41], [0.58, 0.61]])
WORDS = ["1: a, b", "2: a, c", "3: b, c", "4: b, d", "5: c, d"]


def test_golden():
    found = {score.metric: score.value for score in context_scores("cosimlex/en", WORDS, GOLD, PREDICTED)}
    assert found == pytest.approx(
        {
            "cosimlex/en/st1_pearson": 0.949143292,
            "cosimlex/en/st1_uncentred": 0.953292803,
            "cosimlex/en/st2_spearman": 0.939393939,
        }
    )


def test_a_shift_common_to_all_changes_only_the_uncentred_figure():
    shifted = PREDICTED + np.array([0.0, 0.3])
    before, after = (
        {score.metric: score.value for score in context_scores("c", WORDS, GOLD, predicted)}
        for predicted in (PREDICTED, shifted)
    )
    assert after["c/st1_pearson"] == pytest.approx(before["c/st1_pearson"])
    assert after["c/st1_uncentred"] < before["c/st1_uncentred"] - 0.05
    assert np.isnan(uncentred(np.zeros(3), np.ones(3)))


def test_what_never_changes_has_no_correlation():
    assert context_scores("c", WORDS, GOLD, np.zeros_like(GOLD)) == []
    only_words = context_scores("c", WORDS, GOLD, np.repeat(PREDICTED[:, :1], 2, 1))
    assert [score.metric for score in only_words] == ["c/st2_spearman"]


def test_contexts_of_a_pair_are_one_group():
    change, _, ratings = context_scores("c", WORDS, GOLD, PREDICTED)
    assert list(change.group_ids) == list(change.item_ids) == WORDS
    assert list(ratings.item_ids[:2]) == ["1: a, b, context 1", "1: a, b, context 2"]
    assert list(ratings.group_ids) == [pair for pair in WORDS for _ in range(2)]
    assert ratings.values[:4] == pytest.approx([0.3, 0.62, 0.71, 0.7])
    assert ratings.gold[:4] == pytest.approx([2.88, 7.83, 7, 6.2])


def test_figures_that_are_no_numbers_are_refused():
    wrong = PREDICTED.copy()
    wrong[2, 1] = np.nan
    with pytest.raises(ValueError, match="c: predicted: nan at 2, 1"):
        context_scores("c", WORDS, GOLD, wrong)
    with pytest.raises(ValueError, match="c: gold: inf at 0, 0"):
        context_scores("c", WORDS, np.where(GOLD == 2.88, np.inf, GOLD), np.zeros_like(GOLD))
