"""Whether a point may go on: against simulation, and where the answer is plain."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from orchestration.search.racing import chance_to_win, noise
from orchestration.study.blocks import Objective
from tests.searching import AUC, MRR, selection

NAN = math.nan


def test_noise_is_what_least_squares_leaves() -> None:
    """The same additive model, with a column per point and per seed, in statsmodels."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(6, 4)) + rng.normal(size=4)
    scores[1, 2:] = scores[3, 1:] = scores[5, 3] = NAN
    rows, columns = np.nonzero(~np.isnan(scores))
    design = np.concatenate([np.eye(6)[rows], np.eye(4)[columns][:, 1:]], axis=1)
    fit = sm.OLS(scores[rows, columns], design).fit()
    assert noise(scores) == (pytest.approx(math.sqrt(fit.scale)), int(fit.df_resid))
    nobody_ran = np.vstack([np.full(4, NAN), scores])
    assert noise(nobody_ran) == noise(scores)
    # point 3 has one seed of four: three fourths of the noise of one difference are still to come
    scale = math.sqrt(2 * fit.scale * (1 - 1 / 4))
    expected = stats.t.cdf((scores[3, 0] - scores[0, 0]) / scale, fit.df_resid)
    assert chance_to_win(nobody_ran, 4, 1) == pytest.approx(expected)


def test_noise_needs_two_points_at_two_seeds() -> None:
    assert math.isnan(noise(np.array([[1.0, 2.0], [1.0, NAN]]))[0])
    assert noise(np.array([[1.0, 2.0], [1.0, 4.0]])) == (pytest.approx(1.0), 1)


def test_the_chance_is_how_often_it_happens() -> None:
    """Points of any quality, 4 seeds, one of them seen at 2: among those with a chance of p, a share of p wins."""
    rng = np.random.default_rng(0)
    chances, ahead = [], []
    for _ in range(10_000):
        scores = rng.normal(size=(12, 4)) + 3 * rng.normal(size=4) + 10 * rng.normal(size=(12, 1))
        ahead.append(scores[1].mean() > scores[0].mean())
        seen = scores.copy()
        seen[1, 2:] = NAN
        chances.append(chance_to_win(seen, 1, 0))
    part = np.digitize(chances, [0.2, 0.4, 0.6, 0.8])
    for group in range(5):
        chosen = part == group
        assert np.mean(np.array(ahead)[chosen]) == pytest.approx(np.mean(np.array(chances)[chosen]), abs=0.06)


@given(st.floats(-3, 3), st.floats(1e-3, 4), st.integers(0, 2**31))
def test_what_a_seed_does_to_every_point_and_the_unit_do_not_matter(shift: float, unit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5, 4))
    scores[2, 2:] = NAN
    moved = unit * (scores + np.array([shift, -shift, 2 * shift, 0.0]))
    assert chance_to_win(moved, 2, 0) == pytest.approx(chance_to_win(scores, 2, 0), abs=1e-9)


def test_plain_cases() -> None:
    unknown = np.array([[1.0, 2.0], [0.5, NAN]])
    assert chance_to_win(unknown, 1, 0) == 1.0  # nothing is known of the noise
    level = np.array([[1.0, 2.0], [1.0, NAN], [5.0, 6.1]])
    assert chance_to_win(level, 1, 0) == pytest.approx(0.5)
    far = np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 1.1, NAN, NAN], [1.1, 2.0, 3.0, 3.9]])
    assert chance_to_win(far, 1, 0) < 0.01


@pytest.mark.parametrize(("score", "chance"), [(1.1, 1.0), (1.0, 0.0), (0.9, 0.0)])
def test_without_any_noise_a_difference_stays(score: float, chance: float) -> None:
    assert chance_to_win(np.array([[1.0, 1.0], [score, NAN], [2.0, 2.0]]), 1, 0) == chance


def test_what_is_not_said_is_a_race_of_one_objective(tmp_path: Path) -> None:
    """And the same search as when it is said; with several objectives nobody has to say that there is none."""
    unsaid, said = selection(tmp_path), selection(tmp_path, race=0.1)
    assert (unsaid.search.least_chance, unsaid.id) == (0.1, said.id)
    assert selection(tmp_path, race=0.0).search.least_chance == 0
    two = tuple(Objective(metric=name, mode="max") for name in (MRR, AUC))
    several = selection(tmp_path, objective=two)
    assert (several.search.least_chance, several.id) == (0.0, selection(tmp_path, objective=two, race=0.0).id)
