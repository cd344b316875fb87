"""Ranks by hand, against a sort, and in blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.metrics import retrieval
from evaluators.metrics.item_metrics import hits, reciprocal
from evaluators.metrics.retrieval import cosine_ranks, metric_names, named, ranking_scores, ranks_and_rivals

SCORES = np.array([[0.5, 0.5, 0.25, 0.125], [0.75, 0.25, 0.5, 0.5], [0.125, 0.5, 0.25, 0.0]])
GOLD = [[0], [2, 1], [3]]


def ranks(scores: np.ndarray, gold: list[list[int]]) -> np.ndarray:
    return ranks_and_rivals(scores, gold)[0]


def test_ranks_with_ties_by_hand():
    """Row 0 ties with a wrong candidate; the better of row 1's two answers counts; row 2 is last."""
    places = ranks(SCORES, GOLD)
    assert places.tolist() == [2, 3, 4]
    assert [hits(places, k).mean() for k in (1, 2, 3)] == pytest.approx([0, 1 / 3, 2 / 3])
    assert reciprocal(places).mean() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)


@st.composite
def problems(draw):
    queries, candidates = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    scores = draw(st.lists(st.integers(0, 3), min_size=queries * candidates, max_size=queries * candidates))
    column = st.lists(st.integers(0, candidates - 1), min_size=1, max_size=3)
    return np.array(scores, float).reshape(queries, candidates), [draw(column) for _ in range(queries)]


@given(problems())
def test_a_rival_is_the_highest_of_the_wrong_ones_and_nobody_where_the_answer_is_first(problem):
    scores, gold = problem
    for row, right, place, rival in zip(scores, gold, *ranks_and_rivals(scores, gold), strict=True):
        wrong = [column for column in range(len(row)) if column not in right]
        if place == 1:
            assert rival == -1
        else:
            assert rival in wrong
            assert row[rival] == max(row[wrong])


@given(problems())
def test_ranks_agree_with_walking_a_sorted_list(problem):
    """The wrong ones first among equals: the rank is the place of the first right answer, less right ones before."""
    scores, gold = problem
    for row, right, place in zip(scores, gold, ranks(scores, gold), strict=True):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c in right))
        assert place == next(i for i, c in enumerate(order, start=1) if c in right)


def test_one_score_for_everything_is_last_not_first():
    assert ranks(np.zeros((2, 5)), [[0], [1, 2]]).tolist() == [5, 4]


def test_blocks_change_nothing(monkeypatch):
    generator = np.random.default_rng(5)
    queries, candidates = generator.normal(size=(37, 8)), generator.normal(size=(11, 8))
    gold = [[int(i)] for i in generator.integers(11, size=37)]
    whole = cosine_ranks(queries, candidates, gold)
    monkeypatch.setattr(retrieval, "_CELLS", 50)  # four queries at a time
    assert np.array_equal(cosine_ranks(queries, candidates, gold), whole)
    assert np.array_equal(cosine_ranks(queries * 7, candidates * 0.1, gold), whole)  # cosine: length is nothing


def test_a_query_without_answer_is_refused():
    with pytest.raises(ValueError, match="query 1 has no correct candidate"):
        ranks(np.zeros((2, 2)), [[0], []])


def test_scores_carry_every_query():
    scores = ranking_scores("t2d", np.array([1, 6, 60]), ["a", "b", "c"], ["x", "x", "y"])
    assert [score.metric for score in scores] == list(metric_names("t2d"))
    assert metric_names("t2d") == ("t2d/recall@1", "t2d/recall@5", "t2d/recall@10", "t2d/recall@50", "t2d/mrr")
    assert [score.value for score in scores] == pytest.approx(
        [1 / 3, 1 / 3, 2 / 3, 2 / 3, (1 + 1 / 6 + 1 / 60) / 3]
    )
    assert all(score.group_ids == ["x", "x", "y"] for score in scores)
    taken = named(np.array([-1, 1, 0]), ["p", "q"])
    assert taken == ["", "q", "p"]
    scores = ranking_scores("t2d", np.array([1, 6, 60]), ["a", "b", "c"], ["x", "x", "y"], taken)
    assert [score.taken_for for score in scores] == [()] * 4 + [taken]


@pytest.mark.parametrize("width", [3, 7, 17, 31, 255, 384])
@pytest.mark.parametrize("candidates", [2, 5, 33, 101])
def test_a_constant_encoder_ranks_last_whatever_its_size(width, candidates):
    """Equal directions, of equal or different length: a matrix product rounds them differently by their column."""
    row = np.random.default_rng(width).normal(size=width).astype(np.float32)
    scales = np.random.default_rng(1).uniform(0.1, 90, size=(candidates, 1)).astype(np.float32)
    gold = [[i] for i in range(candidates)]
    for rows in (np.tile(row, (candidates, 1)), scales * row):
        assert cosine_ranks(rows, rows[::-1], gold).tolist() == [candidates] * candidates


def test_scaled_copies_of_an_answer_tie_with_it():
    rng = np.random.default_rng(0)
    answer = rng.normal(size=(1, 65)).astype(np.float32)
    candidates = np.concatenate([answer, 3.7 * answer, 0.013 * answer, rng.normal(size=(4, 65))])
    assert cosine_ranks(answer + 0.01, candidates, [[0]]).tolist() == [3]


def test_only_what_rounding_could_part_is_a_tie():
    """Cosines of 1 and 1 - angle²/2."""
    for angle, place in ((1e-4, 2), (0.01, 1)):
        candidates = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
        assert cosine_ranks(candidates[:1], candidates, [[0]]).tolist() == [place]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_refused(bad):
    scores = SCORES.copy()
    scores[1, 2] = bad
    with pytest.raises(ValueError, match=r"scores: .* at 1, 2\n  accepted: finite numbers"):
        ranks(scores, GOLD)
    with pytest.raises(ValueError, match=r"vectors: .* at 0, 1"):
        cosine_ranks(np.array([[1.0, bad]]), np.eye(2), [[0]])
