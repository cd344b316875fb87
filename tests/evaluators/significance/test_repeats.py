"""What a single published difference is worth: by arithmetic, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluators.significance.published import published
from evaluators.significance.repeats import repeat


def test_figures_by_another_hand() -> None:
    """SimCSE on BERT-base against a rival .8 above it, a seed each: under one standard error."""
    found = repeat(76.25, 77.05, 0.84, 49, 1)
    assert found.difference == pytest.approx(0.80)
    assert found.standard_error == pytest.approx(0.84 * 2**0.5)
    assert found.by_chance == pytest.approx(2 * stats.t.sf(0.80 / (0.84 * 2**0.5), 49))
    assert found.keeps_sign == pytest.approx(stats.t.cdf(0.80 / (0.84 * 2), 49))
    assert found.seeds == pytest.approx(2 * (2.8 * 0.84 / 0.8) ** 2, abs=3)  # two samples, power .80
    assert repeat(1.0, 1.0, 0.1, 9, 1).seeds is None


def test_a_repeat_keeps_the_sign_as_often_as_told() -> None:
    """Flat in the true difference: of pairs of studies whose first found about what was found here."""
    rng = np.random.default_rng(0)
    true = rng.uniform(-10, 10, 400_000)
    first, second = (true + rng.normal(0, 2**0.5, true.size) for _ in range(2))
    near = np.abs(first - 1.0) < 0.05
    assert (second[near] > 0).mean() == pytest.approx(repeat(0.0, 1.0, 1.0, 10**9, 1).keeps_sign, abs=0.02)


def test_published_seeds_give_the_figures_of_their_source() -> None:
    """Mean and sd of the 50 seeds of BERT-base are .7511 and .0084."""
    assert {name: one.seeds for name, one in published().items()} == dict.fromkeys(
        (f"simcse-{model}" for model in ("bert-base", "bert-large", "roberta-base", "roberta-large")), 50
    )
    assert published()["simcse-bert-base"].sd == pytest.approx(0.0084, abs=5e-5)
    assert published()["simcse-bert-large"].sd > 2 * published()["simcse-bert-base"].sd
