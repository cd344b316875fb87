"""Variance components: the array is orthogonal, and simulated scores of known components give them back."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evaluators.significance.components import components, crossed


@pytest.mark.parametrize(("factors", "levels"), [(2, 3), (3, 3), (4, 5), (5, 5), (4, 7), (3, 11)])
def test_every_two_levels_of_two_factors_meet_once(factors: int, levels: int) -> None:
    design = crossed(factors, levels)
    assert design.shape == (levels**2, factors)
    assert not design[0].any()
    for one, other in combinations(range(factors), 2):
        assert len({tuple(row) for row in design[:, [one, other]].tolist()}) == levels**2


def test_an_array_that_leaves_nothing_to_the_rest_is_refused() -> None:
    for factors, levels in [(4, 3), (1, 5), (3, 4), (6, 5)]:
        with pytest.raises(ValueError, match="accepted: 2 to"):
            crossed(factors, levels)


def simulated(draws: np.random.Generator, design: np.ndarray, parts: tuple[float, ...], rest: float) -> np.ndarray:
    effects = [draws.normal(0, part**0.5, design.max() + 1) for part in parts]
    main = sum(effect[design[:, factor]] for factor, effect in enumerate(effects))
    return main + draws.normal(0, rest**0.5, len(design))


def test_known_components_come_back_and_the_intervals_hold_them() -> None:
    """Shares of .5, .2, 0 and .3: unbiased but for the truncation at 0, and intervals that hold them often enough."""
    names, truth, design = ("init", "data", "dropout"), np.array([0.5, 0.2, 0.0, 0.3]), crossed(3, 5)
    draws, held, variances = np.random.default_rng(3), np.zeros(4), []
    for _ in range(300):
        found = components(simulated(draws, design, tuple(truth[:3]), truth[3]).tolist(), names, design)
        parts = [*found.factors.values(), found.rest]
        variances.append([part.variance for part in parts])
        held += [part.low <= share <= part.high for part, share in zip(parts, truth, strict=True)]
    assert np.mean(variances, axis=0) == pytest.approx(truth, abs=0.05)
    assert (held / 300 >= 0.92).all(), held / 300


def test_a_balanced_table_by_hand() -> None:
    """Rows 0, 3, 6 and columns 0, 1, 2 add up exactly: MS rows 27, columns 3, rest 0, so components 9 and 1."""
    design = crossed(2, 3)
    found = components((3.0 * design[:, 0] + design[:, 1]).tolist(), ("rows", "columns"), design)
    assert [part.variance for part in found.factors.values()] == pytest.approx([9.0, 1.0])
    assert found.rest.variance == pytest.approx(0.0)
    assert (found.mean, found.sd, found.factors["rows"].share) == pytest.approx((4.0, 10**0.5, 0.9))


def test_of_one_factor_alone_the_interval_is_that_of_f() -> None:
    """Rows and noise, no columns: MS rows over MS rest is F times 1 + 5 · variance of rows / variance of the rest."""
    draws, design = np.random.default_rng(1), crossed(2, 5)
    rows, rest = draws.normal(size=5), draws.normal(size=(5, 5))
    rows -= rows.mean()
    rest -= rest.mean(0) + rest.mean(1, keepdims=True) - rest.mean()
    found = components((7 + rows[:, None] + rest)[tuple(design.T)].tolist(), ("rows", "columns"), design)
    squares, of_rest = 5 * (rows**2).sum() / 4, (rest**2).sum() / 16
    low, high = (max(squares / of_rest * stats.f.ppf(tail, 16, 4) - 1, 0) for tail in (0.025, 0.975))
    of_rows = found.factors["rows"]
    assert (of_rows.variance, found.rest.variance) == pytest.approx(((squares - of_rest) / 5, of_rest))
    assert (of_rows.low, of_rows.high) == pytest.approx((low / (low + 5), high / (high + 5)), abs=0.01)
    assert (found.rest.low, found.rest.high) == pytest.approx((1 - of_rows.high, 1 - of_rows.low), abs=1e-9)
    assert (found.mean, found.runs) == (pytest.approx(7), 25)


def test_what_two_factors_do_together_is_in_the_rest() -> None:
    draws, design, found = np.random.default_rng(5), crossed(3, 5), []
    for _ in range(200):
        both = draws.normal(0, 1, (5, 5))[design[:, 0], design[:, 2]]
        parts = components(both.tolist(), ("init", "data", "dropout"), design)
        found.append([part.variance for part in (*parts.factors.values(), parts.rest)])
    assert np.mean(found, axis=0) == pytest.approx([0, 0, 0, 1], abs=0.12)


def test_equal_scores_have_no_parts() -> None:
    found = components([0.5] * 9, ("init", "data"), crossed(2, 3))
    assert (found.sd, found.rest.share, found.factors["init"].high) == (0.0, 0.0, 0.0)
