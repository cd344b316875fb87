"""Levels of a chain of questions: by hand, and the false discoveries that they let through."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluators.significance.online import next_level, weight

ALPHA = 0.05


def test_weights_sum_to_less_than_one() -> None:
    """Up to N by addition; beyond, the integral of 0.0722 log x / (x e^sqrt(log x)), which is 2 e^-v (v³ + 3v² + 6v + 6)."""
    n = 200_000
    v = math.sqrt(math.log(n))
    tail = 0.0722 * 2 * math.exp(-v) * (v**3 + 3 * v**2 + 6 * v + 6)
    total = sum(weight(age) for age in range(1, n + 1)) + tail
    assert 0.85 < total < 1


def test_levels_by_hand() -> None:
    first, second = 0.0722 * math.log(2), 0.0722 * math.log(2) / (2 * math.exp(math.sqrt(math.log(2))))
    assert next_level([], ALPHA) == pytest.approx(0.025 * first)
    assert next_level([False], ALPHA) == pytest.approx(0.025 * second)
    assert next_level([True], ALPHA) == pytest.approx(0.025 * second + 0.025 * first)
    third = 0.025 * weight(3)
    assert next_level([True, True], ALPHA) == pytest.approx(third + 0.025 * second + 0.05 * first)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_false_discovery_rate_stays_below_alpha_when_the_asker_adapts(share: float) -> None:
    """A claim is worth asking about more often after a success: which one comes next depends on the answers."""
    rng, rates = np.random.default_rng(1), []
    for _ in range(400):
        shown: list[bool] = []
        false = 0
        for _ in range(100):
            real = rng.random() < (min(1.0, share * 1.5) if shown and shown[-1] else share)
            z = rng.standard_normal() + (4.0 if real else 0.0)
            won = math.erfc(abs(z) / math.sqrt(2)) <= next_level(shown, ALPHA)
            false += won and not real
            shown.append(won)
        rates.append(false / max(1, sum(shown)))
    error = np.std(rates) / math.sqrt(len(rates))
    assert np.mean(rates) <= ALPHA + 2 * error
