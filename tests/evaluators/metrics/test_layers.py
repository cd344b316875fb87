"""Figures of single layers, and the theorem's bounds on what a mixture of layers can do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.metrics.geometry import geometry_scores
from evaluators.metrics.layers import READOUT, profile_scores, readout_scores


def _values(means: np.ndarray, taken: np.ndarray) -> dict[str, float]:
    return {score.metric.removeprefix("readout/"): score.value for score in readout_scores(means, taken)}


def test_divergence_by_hand():
    """Layers (1, 0), (0, 1), (1, 1) mixed .1, .2, .7: the readout is (.8, .9), √(.2² + .1²) from the last; both
    lower layers are 1 from it; ‖α - β‖₁ = .1 + .2 + .3; the embeddings take nothing and count nowhere."""
    means = np.array([[[9, 9], [1, 0], [0, 1], [1, 1]]], float)
    found = _values(means, np.array([[0, 0.1, 0.2, 0.7]]))
    assert found["divergence"] == pytest.approx(0.223606798, abs=1e-9)
    assert found["eta"] == pytest.approx(1.0)
    assert found["bound_l1"] == pytest.approx(0.6)
    assert found["bound_2eta"] == pytest.approx(2.0)
    assert found["bound_sharp"] == pytest.approx(0.3)
    assert found["eta_relative"] == pytest.approx(2**-0.5)
    assert found["shift"] == pytest.approx(0.7 - 1 / 3)
    assert found["entropy"] == pytest.approx(-(0.1 * np.log(0.1) + 0.2 * np.log(0.2) + 0.7 * np.log(0.7)))
    assert [found[f"alpha_{layer}"] for layer in (1, 2, 3)] == pytest.approx([0.1, 0.2, 0.7])
    assert "alpha_0" not in found


def test_figures_of_several_texts_are_means_and_extremes_of_each() -> None:
    draws = np.random.default_rng(4)
    means = draws.normal(size=(7, 4, 3))
    taken = np.concatenate([np.zeros((7, 1)), draws.dirichlet(np.ones(3), 7)], axis=1)
    taken[2] = (0, 0, 0.25, 0.75)  # nothing of layer 1, which others read
    alone = [_values(means[[i]], taken[[i]]) for i in range(7)]
    found = _values(means, taken)
    for figure in ("divergence", "entropy", "largest_weight", "alpha_2", "alpha_3"):
        assert found[figure] == pytest.approx(np.mean([values[figure] for values in alone]))
    assert found["shift"] == pytest.approx(np.abs(taken[:, 1:] - 1 / 3).max(axis=1).mean())
    assert found["largest_weight"] == pytest.approx(np.mean([max(weights) for weights in taken]))
    apart = np.linalg.norm(means - means[:, 3:], axis=2)  # (7, 4)
    assert found["divergence_max"] == max(values["divergence"] for values in alone)
    assert found["eta"] == pytest.approx(apart[:, 1:].max())
    assert found["eta_relative"] == pytest.approx(found["eta"] / np.linalg.norm(means[:, 3], axis=1).mean())
    assert found["bound_sharp"] == pytest.approx((taken * apart).sum(axis=1).max())
    assert found["bound_l1"] == pytest.approx(2 * (1 - taken[:, 3]).max() * found["eta"])
    assert not {score.metric: score for score in readout_scores(means, taken)}[
        "readout/divergence"
    ].larger_is_better


def test_one_layer_mixes_nothing_and_uniform_has_not_moved():
    means = np.random.default_rng(0).normal(size=(5, 4, 3))
    last = _values(means, np.tile([0.0, 0, 0, 1], (5, 1)))
    assert (last["shift"], last["divergence"], last["eta"], last["entropy"]) == (0, 0, 0, 0)
    uniform = _values(means, np.tile([0.0, 1 / 3, 1 / 3, 1 / 3], (5, 1)))
    assert uniform["shift"] == pytest.approx(0, abs=1e-12)
    assert uniform["entropy"] == pytest.approx(np.log(3))
    assert set(READOUT) <= {f"readout/{name}" for name in uniform}


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_no_text_is_further_from_its_last_layer_than_the_bounds_allow(texts: int, layers: int, seed: int):
    draws = np.random.default_rng(seed)
    found = _values(draws.normal(size=(texts, layers, 4)), draws.dirichlet(np.ones(layers), texts))
    slack = 1e-9
    assert found["divergence"] <= found["divergence_max"] + slack
    assert found["divergence_max"] <= found["bound_sharp"] + slack
    assert found["bound_sharp"] <= found["bound_l1"] + slack
    assert found["bound_l1"] <= found["bound_2eta"] + slack


def test_the_profile_ranks_by_each_layer_alone():
    """Layer 2 tells the two definitions apart, the others confuse them: reciprocal ranks ½, ½ and 1."""
    right, swapped = np.eye(2), np.eye(2)[::-1]
    terms = np.stack([swapped, swapped, right], axis=1)  # (2, 3 layers, 2)
    definitions = np.stack([right] * 3, axis=1)
    texts = np.concatenate([terms, definitions, np.ones((1, 3, 2))])
    scores = profile_scores(terms, definitions, texts, [(0,), (1,)], ["a", "b"], ["A", "B"])
    found = {score.metric: score for score in scores}
    assert [found[f"layers/{layer}/mrr"].value for layer in range(3)] == [0.5, 0.5, 1.0]
    assert found["layers/last_gain"].value == 0.5
    assert found["layers/last_gain"].values is not None
    assert found["layers/last_gain"].values.tolist() == [0.5, 0.5]
    for layer in range(3):
        for score in geometry_scores(texts[:, layer]):
            of_layer = found[f"layers/{layer}/{score.metric.removeprefix('geometry/')}"]
            assert (of_layer.value, of_layer.larger_is_better) == (score.value, score.larger_is_better)
