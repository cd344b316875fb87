"""Invariants that define the two figures, and one matrix worked out elsewhere."""

import math

import numpy as np
import pytest

from evaluators.metrics import geometry
from evaluators.metrics.geometry import anisotropy, effective_rank, geometry_scores, sample


def generator():
    return np.random.default_rng(3)


MATRIX = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 1], [1, 1, 0]], float)


def test_effective_rank_by_hand():
    """MᵀM is [[2, 1], [1, 5]] beside a 1: eigenvalues (7 ± √13) / 2 and 1, and σ are their roots."""
    singular = np.sqrt([(7 + math.sqrt(13)) / 2, (7 - math.sqrt(13)) / 2, 1])
    share = singular / singular.sum()
    assert effective_rank(MATRIX) == pytest.approx(math.exp(-(share * np.log(share)).sum()), abs=1e-9)
    assert effective_rank(MATRIX) == pytest.approx(2.8161939, abs=1e-6)


def test_the_score_takes_rows_at_length_one():
    """Rows e1, e2, e3 and h = (e1 + e2) / √2: MᵀM = I + hhᵀ has eigenvalues 2, 1 and 1."""
    share = np.array([math.sqrt(2), 1, 1]) / (math.sqrt(2) + 2)
    assert geometry_scores(MATRIX)[1].value == pytest.approx(math.exp(-(share * np.log(share)).sum()), abs=1e-9)


@pytest.mark.parametrize("rows", [2, 5, 16])
def test_equal_rows_use_one_direction_and_orthonormal_rows_all(rows):
    equal = np.tile([[1.0, 2.0, 3.0]], (rows, 1))
    assert effective_rank(equal) == pytest.approx(1)
    assert anisotropy(equal, generator()) == pytest.approx(1)
    assert effective_rank(np.eye(rows)) == pytest.approx(rows)
    assert anisotropy(np.eye(rows), generator()) == pytest.approx(0)


def test_anisotropy_never_pairs_a_row_with_itself():
    """With two opposite rows every admissible pair has cosine -1."""
    assert anisotropy(np.array([[1.0, 0.0], [-2.0, 0.0]]), generator()) == pytest.approx(-1)


def test_anisotropy_nears_the_mean_over_all_pairs():
    rows = np.random.default_rng(1).normal(size=(60, 5)) + 1
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = units @ units.T
    exact = cosines[~np.eye(60, dtype=bool)].mean()
    assert anisotropy(rows, generator()) == pytest.approx(exact, abs=5 * cosines.std() / 100)


def test_figures_know_neither_scale_nor_rotation():
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 0.5
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))
    for turned, straight in zip(geometry_scores(3 * rows @ turn), geometry_scores(rows), strict=True):
        assert turned.value == pytest.approx(straight.value)


def test_many_rows_are_sampled(monkeypatch):
    rows = np.arange(50.0)[:, None]
    assert np.array_equal(sample(rows, generator()), rows)
    monkeypatch.setattr(geometry, "SAMPLE", 20)
    drawn = sample(rows, generator())[:, 0]
    assert len(drawn) == 20
    assert (np.diff(drawn) > 0).all()


def test_the_sample_is_the_same_whatever_the_global_seed():
    rows = np.random.default_rng(1).normal(size=(50, 4))
    np.random.seed(1)  # noqa: NPY002
    first = [score.value for score in geometry_scores(rows)]
    np.random.seed(2)  # noqa: NPY002
    assert [score.value for score in geometry_scores(rows)] == first
    assert [score.larger_is_better for score in geometry_scores(rows)] == [False, True]


def test_one_row_has_no_pairs():
    with pytest.raises(ValueError, match="two rows"):
        anisotropy(np.ones((1, 3)), generator())
