"""Metrics of counts against the same metrics of items written out as often as they are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluators.metrics.counted_metrics import METRICS
from evaluators.metrics.item_metrics import aggregate
from evaluators.metrics.scores import Aggregate


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 1e-3), (1e6, 1.0), (-1e4, 1e-2)])
@pytest.mark.parametrize("kind", ["mean", "sd", "pearson", "spearman"])
def test_values_may_be_small_and_far_from_zero(kind: Aggregate, middle: float, spread: float) -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=30)
    rows = middle + spread * (gold + rng.normal(size=(2, 30)))
    gold = middle + spread * gold
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=20).T.astype(np.float32)
    found = METRICS[kind](rows, gold)(counts)
    for b in range(20):
        taken = np.repeat(np.arange(30), counts[:, b].astype(int))
        expected = [aggregate(kind, row[taken], gold[taken]) for row in rows]
        assert found[:, b] == pytest.approx(expected, rel=1e-9)


def test_a_resample_of_equal_items_is_constant_and_one_of_unequal_items_is_not() -> None:
    """Also beside an item, drawn in neither, that is so large that their own spread is small next to it."""
    rows = np.array([[1.0, 2.0, 3.0, 3.0, 1e4]])
    counts = np.array([[0, 0, 2, 3, 0], [1, 1, 1, 0, 0]], np.float32).T
    assert METRICS["sd"](rows, None)(counts).tolist() == [[0, pytest.approx(1)]]
    other = np.array([[2.0, 2.0, 5.0, 4.0, 4.0]])
    for values, gold in ((rows, other[0]), (other, rows[0])):
        constant, defined = METRICS["pearson"](values, gold)(counts)[0]
        assert math.isnan(constant)
        assert defined == pytest.approx(math.sqrt(3) / 2)  # of 1, 2, 3 with 2, 2, 5


@pytest.mark.parametrize("count", [200, 255, 256, 300])
def test_an_auc_is_exact_where_16_bits_just_hold_its_sums_and_where_they_just_do_not(count: int) -> None:
    """Every item labelled 1 ("one") lies above both labelled 0 ("zeros"), so the AUC is 1 and every product of a
    one's count and the zeros' sum is as large as it can be. `together` of these products just fit into 16 bits."""
    rows, gold = np.array([[-2.0, -1.0, *range(32)]]), np.repeat([0.0, 1.0], [2, 32])
    for together in range(1, 18):
        for zeros in (65_535 // (count * together) + more for more in (-1, 0, 1)):
            counts = np.array([zeros // 2, zeros - zeros // 2, *[count] * 32], np.float32)[:, None]
            assert METRICS["auc"](rows, gold)(counts).tolist() == [[1.0]]
