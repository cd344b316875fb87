"""How well the vector of a noun phrase follows from those of its modifier and its head.

An encoder composes a kind of modifier with little distortion when one operator T tells the phrase from its parts:
‖f(m h) - T(f(m), f(h))‖ is small for every pair. T is fitted here, and measured on pairs it has not seen.
Source: Concept, section 3 and theorem D.1; the paper prints no estimator, this one is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corpora.sources.texts import keyed
from evaluators.metrics.vectors import unit

PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5


def operator_residuals(parts: np.ndarray, phrases: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Phrase less what a ridge regression on its parts says of it, for each phrase by folds that lack its group.

    parts (N, P), phrases (N, D), groups: N names; all pairs of a group are in one fold, or the operator would have
    seen the word it is asked about. The penalty of each fold is chosen by folds within what it is fitted to.
    Returns (N, D).
    """
    fold = folds(groups)
    left = np.empty_like(phrases, dtype=np.float64)
    for out in range(fold.max() + 1):
        seen, unseen = fold != out, fold == out
        penalty = _chosen(
            parts[seen], phrases[seen], [group for group, kept in zip(groups, seen, strict=True) if kept]
        )
        told = _ridge(parts[seen], phrases[seen], parts[unseen], (penalty,))[0]
        left[unseen] = phrases[unseen] - told
    return left


def folds(groups: Sequence[str]) -> np.ndarray:
    """The fold of each item, the same for all of a group: groups dealt in turn, in an order of their names'
    hashes."""
    order = sorted(set(groups), key=lambda group: keyed("fold", group))
    of = {group: index % FOLDS for index, group in enumerate(order)}
    return np.array([of[group] for group in groups])


def _chosen(parts: np.ndarray, phrases: np.ndarray, groups: Sequence[str]) -> float:
    """The penalty with the least squared residual in folds by group."""
    fold, errors = folds(groups), np.zeros(len(PENALTIES))
    for out in range(fold.max() + 1):
        seen, unseen = fold != out, fold == out
        told = _ridge(parts[seen], phrases[seen], parts[unseen], PENALTIES)
        errors += ((told - phrases[unseen]) ** 2).sum(axis=(1, 2))
    return PENALTIES[int(errors.argmin())]


def _ridge(x: np.ndarray, y: np.ndarray, asked: np.ndarray, penalties: Sequence[float]) -> np.ndarray:
    """What ridge regressions with a free intercept say of `asked`. (N, P), (N, D), (M, P) -> (penalties, M, D)."""
    centre, mean = x.mean(axis=0), y.mean(axis=0)
    u, s, v = np.linalg.svd(x - centre, full_matrices=False)
    within, aim = (asked - centre) @ v.T, u.T @ (y - mean)
    return np.stack([within @ ((s / (s**2 + penalty))[:, None] * aim) + mean for penalty in penalties])


def distortion(
    modifiers: np.ndarray,
    heads: np.ndarray,
    phrases: np.ndarray,
    paraphrases: np.ndarray,
    by_head: Sequence[str],
    by_modifier: Sequence[str],
) -> tuple[dict[str, float], np.ndarray]:
    """Figures of one kind of modifier, and each phrase's residual where its head was not seen, (N,).

    modifiers, heads, phrases, paraphrases (N, D), brought to length 1.
      mean, p95, max   of the residual, heads apart; by_modifier: its mean, modifiers apart
      r2               share of the phrases' variance that the operator tells, heads apart
      head_only, sum   mean distance of a phrase from its head, and from the sum of its parts at length 1
      delta, delta_max distance of a phrase from its paraphrase, mean and greatest. A paraphrase is at most
                       residual + delta from what the operator says (theorem D.1)
    """
    m, h, mh, said = (unit(rows.astype(np.float64)) for rows in (modifiers, heads, phrases, paraphrases))
    parts = np.concatenate([m, h], axis=1)
    left = operator_residuals(parts, mh, by_head)
    residual, delta = np.linalg.norm(left, axis=1), np.linalg.norm(mh - said, axis=1)
    other = np.linalg.norm(operator_residuals(parts, mh, by_modifier), axis=1)
    return {
        "mean": residual.mean(),
        "p95": np.quantile(residual, 0.95),
        "max": residual.max(),
        "by_modifier": other.mean(),
        "r2": 1 - (left**2).sum() / ((mh - mh.mean(axis=0)) ** 2).sum(),
        "head_only": np.linalg.norm(mh - h, axis=1).mean(),
        "sum": np.linalg.norm(mh - unit(m + h), axis=1).mean(),
        "delta": delta.mean(),
        "delta_max": delta.max(),
    }, residual
