"""The operator of composition on spaces where what it must find is known."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from evaluators.metrics.composition import distortion, folds, operator_residuals

DRAWS = np.random.default_rng(0)  # for what is made on import; a test that draws has a generator of its own
MODIFIERS, HEADS = DRAWS.normal(size=(12, 6)), DRAWS.normal(size=(20, 6))
WHICH = [(m, h) for m in range(12) for h in range(20)]
BY_MODIFIER, BY_HEAD = [f"m{m}" for m, _ in WHICH], [f"h{h}" for _, h in WHICH]
PARTS = np.array([[*MODIFIERS[m], *HEADS[h]] for m, h in WHICH])


def test_a_linear_operator_leaves_next_to_nothing_on_words_it_has_not_seen() -> None:
    phrases = PARTS @ np.random.default_rng(1).normal(size=(12, 6)) + 3.0
    for groups in (BY_HEAD, BY_MODIFIER):
        left = operator_residuals(PARTS, phrases, groups)
        assert np.linalg.norm(left, axis=1).max() < 0.02 * np.linalg.norm(phrases, axis=1).mean()


def test_what_parts_do_not_tell_is_left() -> None:
    """Phrases that have nothing to do with their parts: the best is their mean, so next to nothing is explained."""
    phrases = np.random.default_rng(2).normal(size=(240, 6))
    left = operator_residuals(PARTS, phrases, BY_HEAD)
    assert (left**2).sum() / ((phrases - phrases.mean(axis=0)) ** 2).sum() == pytest.approx(1.0, abs=0.12)


def test_a_fold_holds_whole_groups_and_depends_on_names_alone() -> None:
    fold = folds(BY_HEAD)
    assert set(fold) == set(range(5))
    assert all(len(set(fold[[name == one for name in BY_HEAD]])) == 1 for one in set(BY_HEAD))
    assert folds(BY_HEAD[::-1]).tolist() == fold[::-1].tolist()
    names = [f"h{h}" for h in range(20)]
    order = sorted(names, key=lambda name: hashlib.blake2b(f"fold|{name}".encode(), digest_size=8).hexdigest())
    assert folds(names).tolist() == [order.index(name) % 5 for name in names]


@pytest.mark.parametrize(
    ("noise", "penalties"), [(0.02, {0.03}), (0.2, {0.03}), (0.5, {0.1, 0.3}), (1.0, {1.0}), (2.0, {3.0})]
)
def test_the_operator_is_scikit_learns_ridge_with_its_penalty_from_inner_folds(
    noise: float, penalties: set[float]
) -> None:
    """Much noise on few phrases asks for a large penalty, little noise for a small one."""
    draws, chosen = np.random.default_rng(4), set()
    rows = draws.permutation(240)[:60]
    parts, groups = PARTS[rows] * 0.3 + 1.0, np.array([BY_HEAD[row] for row in rows])
    phrases = parts @ draws.normal(size=(12, 6)) + noise * draws.normal(size=(60, 6)) - 2.0

    def split(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        fold = folds(groups[rows].tolist())
        return [(rows[fold != out], rows[fold == out]) for out in range(5)]

    def left(penalty: float, seen: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return phrases[asked] - Ridge(penalty).fit(parts[seen], phrases[seen]).predict(parts[asked])

    found = operator_residuals(parts, phrases, groups.tolist())
    for seen, unseen in split(np.arange(60)):
        errors = {
            penalty: sum((left(penalty, *inner) ** 2).sum() for inner in split(seen))
            for penalty in (0.03, 0.1, 0.3, 1.0, 3.0)
        }
        best = min(errors, key=errors.__getitem__)
        np.testing.assert_allclose(found[unseen], left(best, seen, unseen), atol=1e-9)
        chosen.add(best)
    assert chosen == penalties


def test_a_word_that_only_its_own_phrases_tell_is_not_told_when_it_is_left_out() -> None:
    """Each head adds a vector of its own that its encoding does not hold: seen heads would give it away."""
    own = np.random.default_rng(5).normal(size=(20, 6)) * 5
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


def test_distortion_row_by_row() -> None:
    """Every figure once more from its definition, on rows of any length; float32 comes out in float64."""
    given = np.random.default_rng(6).normal(size=(4, 240, 6)).astype(np.float32) + np.float32(0.4)
    found, residual = distortion(*given, BY_HEAD, BY_MODIFIER)
    m, h, mh, said = (
        np.array([row / np.sqrt(sum(v * v for v in row)) for row in rows.astype(float)]) for rows in given
    )
    parts = np.array([[*a, *b] for a, b in zip(m, h, strict=True)])
    left, other = (operator_residuals(parts, mh, groups) for groups in (BY_HEAD, BY_MODIFIER))
    lengths = [np.linalg.norm(row) for row in left]
    middle = [(a + b) / np.linalg.norm(a + b) for a, b in zip(m, h, strict=True)]
    delta = [np.linalg.norm(a - b) for a, b in zip(mh, said, strict=True)]
    assert residual.tolist() == pytest.approx(lengths)
    assert found == pytest.approx({
        "mean": np.mean(lengths),
        "p95": np.percentile(lengths, 95),
        "max": max(lengths),
        "by_modifier": np.mean([np.linalg.norm(row) for row in other]),
        "r2": r2_score(mh, mh - left, multioutput="variance_weighted"),
        "head_only": np.mean([np.linalg.norm(a - b) for a, b in zip(mh, h, strict=True)]),
        "sum": np.mean([np.linalg.norm(a - b) for a, b in zip(mh, middle, strict=True)]),
        "delta": np.mean(delta),
        "delta_max": max(delta),
    })  # fmt: skip


def test_a_paraphrase_is_no_further_than_residual_and_delta() -> None:
    phrases, paraphrases = np.random.default_rng(7).normal(size=(2, 240, 6))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (PARTS[:, :6], PARTS[:, 6:], phrases)]
    said = paraphrases / np.linalg.norm(paraphrases, axis=1, keepdims=True)
    left = operator_residuals(np.concatenate(unit[:2], axis=1), unit[2], BY_HEAD)
    told = unit[2] - left
    reach = np.linalg.norm(left, axis=1) + np.linalg.norm(unit[2] - said, axis=1)
    assert (np.linalg.norm(said - told, axis=1) <= reach + 1e-9).all()
