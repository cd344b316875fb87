"""Figures of single layers, and the theorem's bounds on what a mixture of layers can do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    """Layer 1 tells the two definitions apart, layer 0 confuses them: reciprocal ranks 1 and ½."""
    right, swapped = np.eye(2), np.eye(2)[::-1]
    terms = np.stack([swapped, right], axis=1)  # (2, 2 layers, 2)
    definitions = np.stack([right, right], axis=1)
    scores = profile_scores(
        terms, definitions, np.concatenate([terms, definitions]), [(0,), (1,)], ["a", "b"], ["A", "B"]
    )
    found = {score.metric: score for score in scores}
    assert found["layers/0/mrr"].value == 0.5
    assert found["layers/1/mrr"].value == 1.0
    assert found["layers/last_gain"].value == 0.5
    assert found["layers/last_gain"].values is not None
    assert found["layers/last_gain"].values.tolist() == [0.5, 0.5]
    assert {
        f"layers/{layer}/{figure}" for layer in (0, 1) for figure in ("mrr", "anisotropy", "effective_rank")
    } <= set(found)
