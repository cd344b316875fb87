"""The operator of composition on spaces where what it must find is known."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.metrics.composition import distortion, folds, operator_residuals

DRAWS = np.random.default_rng(0)
MODIFIERS, HEADS = DRAWS.normal(size=(12, 6)), DRAWS.normal(size=(20, 6))
WHICH = [(m, h) for m in range(12) for h in range(20)]
BY_MODIFIER, BY_HEAD = [f"m{m}" for m, _ in WHICH], [f"h{h}" for _, h in WHICH]
PARTS = np.array([[*MODIFIERS[m], *HEADS[h]] for m, h in WHICH])


def test_a_linear_operator_leaves_next_to_nothing_on_words_it_has_not_seen() -> None:
    phrases = PARTS @ DRAWS.normal(size=(12, 6)) + 3.0
    for groups in (BY_HEAD, BY_MODIFIER):
        left = operator_residuals(PARTS, phrases, groups)
        assert np.linalg.norm(left, axis=1).max() < 0.02 * np.linalg.norm(phrases, axis=1).mean()


def test_what_parts_do_not_tell_is_left() -> None:
    """Phrases that have nothing to do with their parts: the best is their mean, so next to nothing is explained."""
    phrases = DRAWS.normal(size=(240, 6))
    left = operator_residuals(PARTS, phrases, BY_HEAD)
    assert (left**2).sum() / ((phrases - phrases.mean(axis=0)) ** 2).sum() == pytest.approx(1.0, abs=0.12)


def test_a_fold_holds_whole_groups_and_depends_on_names_alone() -> None:
    fold = folds(BY_HEAD)
    assert set(fold) == set(range(5))
    assert all(len(set(fold[[name == one for name in BY_HEAD]])) == 1 for one in set(BY_HEAD))
    assert folds(BY_HEAD[::-1]).tolist() == fold[::-1].tolist()
    assert np.bincount(folds([f"h{h}" for h in range(20)])).tolist() == [4] * 5


def test_a_word_that_only_its_own_phrases_tell_is_not_told_when_it_is_left_out() -> None:
    """Each head adds a vector of its own that its encoding does not hold: seen heads would give it away."""
    own = DRAWS.normal(size=(20, 6)) * 5
    phrases = PARTS[:, :6] + np.array([own[h] for _, h in WHICH])
    heads_apart = operator_residuals(PARTS, phrases, BY_HEAD)
    modifiers_apart = operator_residuals(
        np.array([[*MODIFIERS[m], *np.eye(20)[h]] for m, h in WHICH]), phrases, BY_MODIFIER
    )
    assert np.linalg.norm(modifiers_apart, axis=1).mean() < 0.2 * np.linalg.norm(heads_apart, axis=1).mean()


def test_distortion_of_a_head_that_is_not_changed() -> None:
    """Phrase = head: no distance from the head, and a paraphrase that is the phrase has no delta."""
    heads, modifiers = PARTS[:, 6:], PARTS[:, :6]
    found, residual = distortion(modifiers, heads, heads, heads, BY_HEAD, BY_MODIFIER)
    assert found["head_only"] == found["delta"] == found["delta_max"] == 0
    assert residual.shape == (240,)
    assert found["mean"] == residual.mean() < 0.1
    assert found["r2"] > 0.98
    assert found["mean"] <= found["p95"] <= found["max"]


def test_a_paraphrase_is_no_further_than_residual_and_delta() -> None:
    phrases, paraphrases = DRAWS.normal(size=(2, 240, 6))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (PARTS[:, :6], PARTS[:, 6:], phrases)]
    said = paraphrases / np.linalg.norm(paraphrases, axis=1, keepdims=True)
    left = operator_residuals(np.concatenate(unit[:2], axis=1), unit[2], BY_HEAD)
    told = unit[2] - left
    reach = np.linalg.norm(left, axis=1) + np.linalg.norm(unit[2] - said, axis=1)
    assert (np.linalg.norm(said - told, axis=1) <= reach + 1e-9).all()
