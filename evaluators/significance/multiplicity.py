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


def benjamini_hochberg(
    p: Sequence[float], *, claims: Sequence[int] | None = None, true_at_most: int | None = None
) -> np.ndarray:
    """Adjusted p values (L,) -> (L,) that bound the share of false findings; for exploratory tables.

        q_i = min over p_j >= p_i of  true_at_most p_j / (claims with a line of at most p_j)

    claims: which one each line is of; by default each is a claim of its own. A claim with several lines is one
    finding, however many of them are small, and a false one if a line is whose null hypothesis is true. Its other
    lines do not change how many findings there are beside that one, so the proof for independent claims holds as
    ever. true_at_most: as for `holm`. NaN keeps its place in the count and stays NaN.
    """
    lines = np.asarray(p, dtype=float)
    of = np.arange(len(lines)) if claims is None else np.asarray(claims)
    bound = len(lines) if true_at_most is None else true_at_most
    adjusted = np.full_like(lines, np.nan)
    order = np.argsort(lines)[: int(np.sum(~np.isnan(lines)))]
    first = np.zeros(len(order), dtype=int)  # 1 where a line is the smallest of its claim
    first[np.unique(of[order], return_index=True)[1]] = 1
    scaled = np.minimum(1.0, bound * lines[order] / np.cumsum(first))
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted
