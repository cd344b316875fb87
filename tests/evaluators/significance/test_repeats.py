"""What a single published difference is worth: by arithmetic, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from evaluators.significance.published import published
from evaluators.significance.repeats import repeat


@pytest.mark.parametrize(("treatment", "seeds"), [(77.05, 1), (77.05, 4), (75.45, 4)])
def test_figures_by_another_hand(treatment: float, seeds: int) -> None:
    """SimCSE on BERT-base against a rival .8 above or below it: of a seed each, under one standard error."""
    found, error = repeat(76.25, treatment, 0.84, 49, seeds), 0.84 * (2 / seeds) ** 0.5
    assert found.difference == pytest.approx(treatment - 76.25)
    assert found.standard_error == pytest.approx(error)
    assert found.by_chance == pytest.approx(2 * stats.t.sf(0.80 / error, 49))
    assert found.keeps_sign == pytest.approx(stats.t.cdf(0.80 / (error * 2**0.5), 49))
    of_pairs = [TTestPower().power(0.80 / (0.84 * 2**0.5), n, 0.05) for n in range(2, 30)]
    assert found.seeds == 2 + sum(shown < 0.80 for shown in of_pairs)
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
