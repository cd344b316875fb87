"""Verdicts of several claims: which of them are corrected together, and what counts."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluators.significance.judge import family_digest, judge
from evaluators.significance.sequential import Sequential
from tests.paired_claims import claim, isolated, paired, verdict


def test_a_family_can_keep_a_claim_back():
    weak = [(claim(name=f"W{k}"), paired([0.1, -0.1, 0.02, 0.05])) for k in range(3)]
    found = judge([(claim(), paired([0.8, 1.1, 0.6])), *weak])[0]
    assert found.verdict == "undecided"
    assert found.ci_low > 0  # type: ignore[operator]
    assert "the correction over 4 claims keeps it back" in found.words


@pytest.mark.parametrize(("method", "late"), [("holm", False), ("fdr_bh", True)])
def test_a_family_is_corrected_as_statsmodels_does(method: str, late: bool):
    rng = np.random.default_rng(7)
    pairs = [paired(rng.normal(mean, 0.5, 4), exploratory=late) for mean in (0.3, 1.5, 0.0, 0.9, 0.6)]
    found = judge([(claim(name=f"H{k}"), one) for k, one in enumerate(pairs)])
    p = [stats.ttest_1samp(one.deltas, 0).pvalue for one in pairs]
    assert [one.p for one in found] == pytest.approx(p)
    assert [one.p_adjusted for one in found] == pytest.approx(multipletests(p, method=method)[1])


def test_failed_claims_count_and_make_the_family_incomplete():
    found = judge([(claim(), paired([0.8, 1.1, 0.6])), (claim(name="H2"), paired([]))])
    assert found[0].p_adjusted == pytest.approx(2 * 0.02908, rel=1e-3)
    assert found[0].words.endswith("(family incomplete: 1 of 2)")
    assert found[1].p_adjusted is None


def test_difference_and_equivalence_of_one_claim_count_once():
    assert verdict([0.4, 0.5, 0.3, 0.6], margin=0.5).p_adjusted == verdict([0.4, 0.5, 0.3, 0.6]).p_adjusted


def test_claims_added_later_form_their_own_family():
    late = (claim(name="late"), paired([0.8, 1.1, 0.6], exploratory=True))
    found = judge([late, (claim(), paired([0.8, 1.1, 0.6]))])
    assert [v.family_size for v in found] == [1, 1]
    assert (
        found[0].words == "better (exploratory: declared, or its seeds or rows changed, after results were seen)"
    )
    assert found[1].words == "better"
    assert "Benjamini-Hochberg" in found[0].sentence


@pytest.mark.parametrize(("expect", "declared"), [("better", {"margin": 5.0}), ("not_worse", {"margin": 0.7})])
def test_a_claim_that_was_added_alone_is_corrected_for_itself_alone(expect, declared):
    deltas = [0.8, 1.1, 0.3, 0.1]
    found = judge([(claim(expect, **declared), paired(deltas, exploratory=True))])[0]
    assert (found.p_adjusted, found.tost_p_adjusted) == (found.p, found.tost_p)


def test_the_declaration_has_a_digest():
    first = family_digest([claim(), claim(name="H2")])
    assert first == family_digest([claim(), claim(name="H2")])
    rules = (None, Sequential(), Sequential(n_max=30), Sequential(tau2=1.0))
    assert len({first, *(family_digest([claim()], sequential=one) for one in rules)}) == 5
    assert judge([(claim(), paired([0.1, 0.2])), (claim(name="H2"), paired([]))])[0].family_digest == first


def test_a_margin_and_a_matched_control_count_twice():
    """One delta of the margin from the control, none from the matched one: neither equivalent nor due to it."""
    both = isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3], margin=2.0)
    assert both.family_size == 2
    assert both.p_adjusted == pytest.approx(2 * both.p)  # type: ignore[operator]
    assert isolated([0.4, 0.5, 0.3, 0.6, 0.45], [0.3, 0.4, 0.2, 0.5, 0.3]).family_size == 1
    plain = judge([(claim(margin=0.5), paired([0.1, 0.2, 0.15])), (claim(name="H2"), paired([0.1, 0.2, 0.1]))])
    assert [found.family_size for found in plain] == [2, 2]


def test_groups_of_claims_are_corrected_apart():
    weak = [(claim(name=f"W{k}", family="calibration"), paired([0.1, -0.1, 0.02, 0.05])) for k in range(3)]
    ranking = (claim(family="ranking"), paired([0.8, 1.1, 0.6]))
    rest = (claim(name="R"), paired([0.8, 1.1, 0.6]))
    found = judge([weak[0], ranking, *weak[1:], rest])
    assert [(v.group, v.family_size) for v in found] == [
        ("calibration", 3), ("ranking", 1), ("calibration", 3), ("calibration", 3), ("", 1),
    ]  # fmt: skip
    assert found[1].verdict == found[4].verdict == "better"
    assert len({v.family_digest for v in found}) == 3
    late = [(claim(name=f"L{k}", family=k), paired([0.8, 1.1, 0.6], exploratory=True)) for k in "ab"]
    assert [(v.group, v.family_size) for v in judge([*late, ranking])] == [("a", 2), ("b", 2), ("ranking", 1)]


def test_withdrawn_claims_count_as_ever_in_their_own_group():
    """.0291 is below the level, and three times it is not."""
    weak = [0.8, 1.1, 0.6]
    declared = [
        (claim(family="ranking"), paired(weak)),
        (claim(name="H2"), paired(weak)),
        (claim(name="H3"), paired(weak, exploratory=True)),
    ]
    found = judge(declared, withdrawn={"ranking": 2})
    assert [(v.verdict, v.family_size) for v in found] == [("undecided", 3), ("better", 1), ("better", 1)]
    assert found[0].p_adjusted == pytest.approx(3 * found[0].p)  # type: ignore[operator]
    told = " (2 of the 3 hypotheses it is corrected with were withdrawn)"
    assert [told in v.words for v in found] == [told in v.sentence for v in found] == [True, False, False]
    both = judge(declared, withdrawn={None: 1, "ranking": 2})
    assert [v.family_size for v in both] == [3, 2, 1]  # an exploratory claim is of no group
