from itertools import combinations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from evaluators.significance.multiplicity import benjamini_hochberg, holm

P5 = [0.03, 0.01, 0.02, 0.2, 0.04]


def test_golden():
    assert holm(P5) == pytest.approx([0.09, 0.05, 0.08, 0.2, 0.09])
    assert benjamini_hochberg(P5) == pytest.approx([0.05, 0.05, 0.05, 0.2, 0.05])
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])  # the running maximum, back in place


def test_statsmodels():
    rng = np.random.default_rng(9)
    for k in range(200):
        p = rng.uniform(size=rng.integers(1, 15)) ** 3
        assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])
        if k % 20 == 0:  # its Holm collects garbage at every call, a tenth of a second each
            assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_holm_is_the_closed_test_of_bonferroni():
    """A hypothesis is rejected at q when every subset that holds it is: q = max over subsets of |S| min p."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        p = rng.uniform(size=rng.integers(1, 6)) ** 2
        subsets = [s for k in range(1, len(p) + 1) for s in combinations(range(len(p)), k)]
        closed = [max(min(1.0, len(s) * min(p[list(s)])) for s in subsets if j in s) for j in range(len(p))]
        assert holm(p) == pytest.approx(closed)


def test_an_unknown_p_counts_and_stays_unknown():
    for correct in (holm, benjamini_hochberg):
        adjusted = correct([0.01, float("nan"), 0.04])
        assert np.isnan(adjusted[1])
        assert adjusted[0] == pytest.approx(0.03)
    assert holm([float("nan")])[0] != holm([float("nan")])[0]
    assert len(holm([])) == 0


def test_lines_that_cannot_be_true_together_count_once():
    """Two claims with two lines each: at most two nulls hold, so the first three multipliers are 2."""
    assert holm([0.01, 0.02, 0.03, 0.04], true_at_most=2) == pytest.approx([0.02, 0.04, 0.06, 0.06])
    assert holm([0.01, 0.9], true_at_most=1) == pytest.approx([0.01, 0.9])


def test_a_claim_with_several_lines_is_one_finding():
    """By hand, two claims: .01 is the first of its claim, 2(.01)/1; .02 of the same one, 2(.02)/1; .03 and .04 of
    both, 2(.03)/2 and 2(.04)/2, and no smaller p has a larger q."""
    q = benjamini_hochberg([0.01, 0.03, 0.02, 0.04], claims=[0, 1, 0, 1], true_at_most=2)
    assert q == pytest.approx([0.02, 0.03, 0.03, 0.04])
    assert benjamini_hochberg([0.04, 0.9], claims=[0, 0], true_at_most=1) == pytest.approx([0.04, 0.9])


@pytest.mark.parametrize("real", [0, 2, 6])
def test_false_discoveries_with_two_lines_per_claim(real: int):
    """Of eight claims some have a real difference, and the rest none, or one as large as the margin."""
    from evaluators.significance.seed_tests import paired_t

    rng = np.random.default_rng(8)
    null = [0.0, 1.5] * 4
    shares = []
    for _ in range(1_000):
        lines, false = [], []
        for k in range(8):
            mean = 3.0 if k < real else null[k]
            t = paired_t(rng.normal(mean, 1, size=6))
            lines += [t.p, t.p_equivalent(1.5)]
            false += [mean == 0.0, mean >= 1.5]  # no difference, not equivalent
        q = benjamini_hochberg(lines, claims=[k // 2 for k in range(16)], true_at_most=8)
        found = (q <= 0.05).reshape(8, 2)
        wrong = found & np.array(false).reshape(8, 2)
        shares.append(wrong.any(axis=1).sum() / max(1, found.any(axis=1).sum()))
    assert np.mean(shares) < 0.065


def test_family_wise_error_with_two_lines_per_claim():
    """Half of the claims at a difference of 0, half at the edge of their margin: one true null per claim."""
    rng = np.random.default_rng(4)
    from evaluators.significance.seed_tests import paired_t

    wrong = 0
    for _ in range(1_000):
        lines = []
        for true in (0.0, 0.0, 1.5, 1.5):
            t = paired_t(rng.normal(true, 1, size=6))
            lines += [t.p, t.p_equivalent(1.5)]
        q = holm(lines, true_at_most=4)
        wrong += bool((q[[0, 2, 5, 7]] <= 0.05).any())
    assert wrong / 1_000 < 0.07
