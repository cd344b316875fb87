"""Correction of p values over a declared group of claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float], *, true_at_most: int | None = None) -> np.ndarray:
    """Holm's adjusted p values (L,) -> (L,): controls the chance of any false rejection.

    `true_at_most`: how many of the null hypotheses can be true together, when logic bounds it. "The mean is
    0" and "|mean| is at least the margin" never hold at once, so a claim with both lines still counts once
    (Shaffer 1986, step-down with logical constraints); by default every line can be true, which is Holm.
    NaN keeps its place in the count and stays NaN.
    """
    lines = np.asarray(p, dtype=float)
    bound = len(lines) if true_at_most is None else true_at_most
    order = np.argsort(lines)  # NaN last
    multipliers = np.minimum(bound, len(lines) - np.arange(len(lines)))
    adjusted = np.empty_like(lines)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, multipliers * lines[order]))
    return adjusted


def benjamini_hochberg(p: Sequence[float]) -> np.ndarray:
    """Adjusted p values (m,) -> (m,) that bound the share of false findings; for exploratory tables.

    NaN counts in m and stays NaN.
    """
    lines = np.asarray(p, dtype=float)
    adjusted = np.full_like(lines, np.nan)
    order = np.argsort(lines)[: int(np.sum(~np.isnan(lines)))]
    scaled = np.minimum(1.0, len(lines) * lines[order] / np.arange(1, len(order) + 1))
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted
