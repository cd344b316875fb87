"""The silhouette against scikit-learn's, which forms every distance; a golden number from an independent script."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from evaluators.metrics import concept_space
from evaluators.metrics.concept_space import gap, silhouette


def test_silhouette_golden():
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.2, 0.9], [-1, 0.2]])
    assert silhouette(rows, np.array(list("aabbc"))) == pytest.approx(0.784615755, abs=1e-6)


@pytest.mark.parametrize("clusters", [2, 5, 40])
def test_silhouette_against_scikit_learn(clusters, monkeypatch):
    rng = np.random.default_rng(clusters)
    labels = rng.integers(0, clusters, 150)  # of 40 clusters some have a single row
    rows = rng.normal(size=(150, 6)) + rng.normal(size=(clusters, 6))[labels]
    expected = silhouette_score(rows, labels, metric="cosine")
    assert silhouette(rows, labels) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr(concept_space, "BLOCK", 37)
    assert silhouette(rows, labels) == pytest.approx(expected, abs=1e-6)


def test_silhouette_of_points_is_one_and_of_one_cluster_nothing():
    points = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    assert silhouette(points, np.array([5, 5, 1, 1, 9, 9])) == pytest.approx(1)
    assert np.isnan(silhouette(points, np.zeros(6)))
    assert np.isnan(silhouette(np.zeros((0, 3)), np.zeros(0)))


def test_silhouette_knows_neither_length_nor_rotation():
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(60, 4)), rng.integers(0, 4, 60)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    scaled = rows @ turn * rng.uniform(0.1, 5, size=(60, 1))
    assert silhouette(scaled, labels) == pytest.approx(silhouette(rows, labels), abs=1e-5)


def test_gap_is_told_from_the_two_mixed_categories():
    """Lemma-centred: DC/SL at .1, SC/DL at .4. CALE prints .130 - .157 for XLM-R and .343 - .269 after training."""
    distances, category = np.array([0.0, 0.3, 0.5, 0.1, 0.9], np.float32), np.array([0, 1, 1, 2, 3])
    assert gap(distances, category) == pytest.approx(-0.3)
    assert gap(1 - distances, category) == pytest.approx(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(gap(distances[:3], category[:3]))
        assert np.isnan(gap(distances[3:], category[3:]))


def test_silhouette_of_a_collapsed_space_is_scikit_learns():
    """At a mean cosine distance of 1e-7, products in float32 are noise; the vectors themselves still differ."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 200)
    common, clusters = rng.normal(size=32), rng.normal(size=(4, 32))
    rows = (common + 3e-4 * (clusters[labels] + 0.5 * rng.normal(size=(200, 32)))).astype(np.float32)
    exact = rows.astype(np.float64)
    unit_rows = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    assert 2e-8 < np.mean(1 - unit_rows @ unit_rows.T) < 5e-7
    expected = silhouette_score(exact, labels, metric="cosine")
    assert expected > 0.3
    assert silhouette(rows, labels) == pytest.approx(expected, abs=1e-4)


def test_silhouette_of_equal_rows_is_zero():
    rows = np.tile(np.random.default_rng(0).normal(size=33), (50, 1))
    assert silhouette(rows, np.arange(50) % 3) == 0
