"""Verdicts from outside: the rows of the decision table, its edge cases, hypotheses, records and words."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds, pair
from evaluators.significance.decision import decide, said_p
from evaluators.significance.evidence import Rules, gather
from evaluators.significance.judge import judge
from evaluators.significance.sequential import Sequential
from evaluators.significance.verdict import Verdict, record
from tests.paired_claims import DELTAS, EIGHT, claim, grown, mean_items, paired, verdict, with_items

# --- worked verdicts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deltas", "declared", "words", "test", "p", "interval"),
    [
        ([0.8, 1.1, 0.6], {}, "better", "paired t", 0.02908, (0.2082, 1.4585)),
        ([0.8, 1.1, -0.1], {"min_effect": 0.5}, "undecided: needs about 12 more seeds (up to 54)", "paired t", 0.237999, (-0.9513, 2.1513)),
        ([0.4, 0.5, 0.3, 0.6, 0.45], {}, "better", "paired t", 0.000844, (0.3112, 0.5888)),
        ([0.4, 0.5, 0.3, 0.6, 0.45], {"margin": 1.0}, "better, but inside the margin", "paired t", 0.000844, (0.3112, 0.5888)),
        ([0.1, -0.2, 0.05, 0.15, -0.1], {"margin": 0.5}, "equivalent within ±0.5", "paired t", 1.0, None),
        ([0.1, -0.2, 0.05, 0.15, -0.1], {"expect": "equivalent", "margin": 0.2}, "equivalent within ±0.2", "paired t", 1.0, None),
        ([1.2, 1.5, 0.9, 1.4, 1.1], {"expect": "equivalent", "margin": 0.5}, "better, beyond the margin", "paired t", 0.000335, (0.9236, 1.5164)),
        (EIGHT, {}, "better", "exact sign-flip", 0.015625, (0.1772, 0.6978)),
        ([-0.3, -0.5, -0.2, -0.6, -0.4], {}, "worse", "paired t", 0.004813, (-0.5963, -0.2037)),
    ],
)  # fmt: skip
def test_worked_verdicts(deltas, declared, words, test, p, interval):
    found = verdict(deltas, **declared)
    assert found.words == words
    assert found.test == test
    scale = 1 if test == "exact sign-flip" else np.std(deltas, ddof=1) / math.sqrt(len(deltas))  # the mean, or t
    assert found.statistic == pytest.approx(np.mean(deltas) / scale)
    assert found.flags == ()
    assert found.p == pytest.approx(p, rel=1e-3)
    if interval is not None:
        assert (found.ci_low, found.ci_high) == pytest.approx(interval, abs=5e-4)


def test_worked_equivalence_p():
    same = [0.1, -0.2, 0.05, 0.15, -0.1]
    assert verdict(same, margin=0.5).tost_p == pytest.approx(0.000777, abs=1e-6)
    assert verdict(same, "equivalent", margin=0.2).tost_p == pytest.approx(0.018685, abs=1e-6)
    assert verdict([1.2, 1.5, 0.9, 1.4, 1.1], "equivalent", margin=0.5).tost_p == pytest.approx(0.99874, abs=1e-5)
    assert verdict([0.4, 0.5, 0.3, 0.6, 0.45], margin=1.0).tost_p == pytest.approx(0.000194, abs=1e-6)


def test_eight_seeds_in_a_family_of_five_take_the_t_test():
    others = [(claim(name=f"O{k}"), paired([0.1, -0.1, 0.02])) for k in range(4)]
    found = judge([(claim(), paired(EIGHT)), *others])[0]
    assert (found.test, found.family_size, found.verdict) == ("paired t", 5, "better")
    assert found.p == pytest.approx(0.005365, abs=1e-6)
    assert found.p_adjusted == pytest.approx(0.026826, abs=5e-6)
    assert found.ci_bonferroni_low < found.ci_low  # type: ignore[operator]
    assert "Holm 0.0268 of 5" in found.sentence


# --- edge cases -----------------------------------------------------------------------------------------------------


def test_identical_results_are_a_sign_that_the_arms_do_not_differ():
    found = verdict([0, 0, 0])
    assert (found.verdict, found.words, found.p) == ("undecided", "undecided: identical results", None)
    assert found.flags == ("check_arms_differ",)
    assert (found.k_agree, found.descriptive) == (0, {})


def test_equal_deltas_have_no_t():
    four = verdict([0.5] * 4)
    assert four.words.startswith("undecided: needs about 2 more seeds (degenerate, sign-flip p = 0.1250")
    assert (four.p, four.flags, four.effect_dz, four.ci_low) == (0.125, ("degenerate",), None, None)
    assert four.delta_sd == 0.0
    shared = judge([(claim(), paired([0.5] * 4)), (claim(name="H2"), paired([]))])[0]  # 2^(1 - 7) is below .05 / 2
    assert shared.words.startswith("undecided: needs about 3 more seeds (degenerate, sign-flip p = 0.1250")
    six = verdict([0.5] * 6)
    assert (six.verdict, six.p) == ("better", 0.03125)
    equal = verdict([0.5] * 6, "equivalent", margin=0.6)
    assert (equal.words, equal.tost_p) == ("better, by more or less than the margin: open", None)
    assert equal.sentence.endswith("equal deltas have no noise to hold against the margin (degenerate)")
    assert verdict([0.5] * 6, "not_worse", margin=0.6).words.endswith("to hold against the margin (degenerate)")
    assert verdict([0.5] * 4, "equivalent", margin=0.6).words.endswith("to hold against the margin (degenerate)")
    assert verdict([0.5] * 6, "not_worse", margin=0.6).test is None  # a sign-flip test knows no margin
    against = "undecided: the sign is against the claim (degenerate, sign-flip p = 0.1250, n = 4)"
    assert verdict([-0.5] * 4).words == verdict([0.5] * 4, "worse").words == against


def test_scores_of_either_sign_are_judged_whatever_their_rounding():
    treatment = tuple(1 + seed % 3 * 1.2e-12 for seed in range(5))
    control = tuple(-1 + seed % 2 * 1e-12 for seed in range(5))
    found = judge([(claim(), PairedSeeds(seeds=tuple(range(5)), treatment=treatment, control=control))])[0]
    assert (found.verdict, found.test) == ("better", "paired t")


def test_arms_that_do_not_vary_are_no_sample():
    found = judge([(claim(), pair(0.7, 0.6, seeds=range(10)))])[0]
    assert (found.verdict, found.p) == ("undecided", None)
    assert "neither arm varies with the seed" in found.words
    assert found.seedless
    assert not judge([(claim(), pair({0: 0.7, 1: 0.7, 2: 0.71}, 0.6))])[0].seedless
    assert not verdict([0.1]).seedless


def test_one_untrained_arm_is_fine():
    found = judge([(claim(), pair({0: 0.71, 1: 0.72, 2: 0.715, 3: 0.72}, 0.6))])[0]
    assert found.verdict == "better"
    assert found.correlation is None
    assert found.unpaired_seeds == 4
    assert judge([(claim(), pair(0.6, {0: 0.71, 1: 0.72, 2: 0.715, 3: 0.72}))])[0].correlation is None


def test_zero_and_one_seed():
    none, one = verdict([]), verdict([0.3])
    assert (none.words, none.p, none.delta_mean) == ("undecided: no complete pair", None, None)
    assert one.words == "undecided: needs at least 1 more seed (3 to estimate noise)"
    assert (one.p, one.n_seeds, one.delta_mean) == (None, 1, pytest.approx(0.3))
    assert "n = 1 seed" in one.sentence


def test_missing_runs_are_outcomes():
    survivors = pair(dict.fromkeys(range(8), 0.9), {s: 0.5 + s / 100 for s in range(10)})
    found = judge([(claim(), survivors)])[0]
    assert (found.words, found.p) == ("undecided: runs missing", None)
    assert [seed for seed, _ in found.dropped] == [8, 9]


def test_two_seeds_are_the_least_a_t_test_takes():
    found = verdict([0.2, 0.21])
    assert found.test == "paired t"
    assert (found.delta_sd, found.effect_dz) == pytest.approx((math.sqrt(0.5e-4), 0.205 / math.sqrt(0.5e-4)))
    assert (found.hedges_g, found.correlation) == (None, None)  # two points always lie on a line


def test_a_crashed_seed_is_pointed_at():
    found = verdict([0.1, 0.12, 0.09, 0.11, -3.0])
    assert "outlier: seed 4" in found.flags
    assert (found.delta_min, found.delta_max) == pytest.approx((-3.0, 0.12))
    # The median is 3, and the median distance from it 1. An outlier is more than 6 of these away.
    for last, flags in ((8.5, ()), (9.5, ("outlier: seed 4",))):
        assert verdict([2, 4, 3, 2, last]).flags == flags


def test_selected_seeds_never_confirm():
    for late in (False, True):
        pairs = paired([0.4, 0.5, 0.3, 0.6, 0.45], selected=True, exploratory=late)
        found = judge([(claim(), pairs)])[0]
        assert (found.verdict, found.words) == ("undecided", "exploratory (selected on these seeds)")
        assert found.p < 0.01  # type: ignore[operator]


# --- hypotheses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "deltas", "word", "as_expected"),
    [
        ("better", [0.4, 0.5, 0.3, 0.6], "better", True),
        ("worse", [0.4, 0.5, 0.3, 0.6], "better", False),
        ("worse", [-0.4, -0.5, -0.3, -0.6], "worse", True),
        ("better", [0.4, -0.5, 0.3, -0.6], "undecided", None),
        ("equivalent", [0.01, -0.02, 0.015, 0.0], "equivalent", True),
        ("equivalent", [0.9, 1.0, 0.95, 0.92], "better", False),
        ("equivalent", [0.1, 0.5, 0.3, 0.2], "better", False),
        ("equivalent", [0.1, -0.5, 0.3, -0.2], "undecided", None),
        ("not_worse", [0.01, -0.02, 0.015, 0.0], "not worse", True),
        ("not_worse", [0.5, 0.4, 0.45, 0.5], "not worse", True),
        ("not_worse", [-0.9, -1.0, -0.95, -0.92], "worse", False),
        ("not_worse", [0.1, -0.5, 0.3, -0.2], "undecided", None),
    ],
)
def test_hypotheses(expect, deltas, word, as_expected):
    found = verdict(deltas, expect, margin=0.2)
    assert (found.verdict, found.as_expected) == (word, as_expected)


def test_better_and_worse_are_one_two_sided_test():
    deltas = [0.4, 0.5, 0.3, 0.6]
    assert verdict(deltas, "better").p == verdict(deltas, "worse").p


def test_not_worse_is_one_sided_at_the_margin():
    deltas = np.array([0.3, 0.1, 0.2])
    found = verdict(deltas, "not_worse", margin=0.05)
    assert found.p == pytest.approx(stats.ttest_1samp(deltas, -0.05, alternative="greater").pvalue)
    assert found.test == "one-sided paired t"
    assert found.words == "not worse (margin 0.05)"
    assert (
        verdict(deltas, "not_worse", margin=0.5).words == "not worse (margin 0.5)"
    )  # inside it, which says no more
    assert verdict([-0.3, -0.1, -0.2], "not_worse", margin=0.05).verdict == "undecided"  # CI reaches above -0.05


def test_without_a_margin_nothing_is_equivalent():
    found = verdict([0.001, -0.002, 0.0015, -0.0001, 0.0])
    assert found.verdict == "undecided"
    assert found.tost_p is None
    assert found.words.endswith("if the observed effect is true")


def test_advice_for_equivalence_uses_the_power_of_equivalence():
    """A margin of one sd needs 11 seeds, 7 more than 4."""
    d = np.array([1.0, -1.0, 1.0, -1.0])
    found = verdict(d / d.std(ddof=1), "equivalent", margin=1.0)
    assert found.k_more == 7
    assert found.words.startswith("undecided: needs about 7 more seeds (up to ")


# --- one question, one answer ---------------------------------------------------------------------------------------


LOSS = [-0.03, -0.005, -0.02, -0.012, -0.025, -0.01, -0.022, -0.015]  # mean -0.0174


def test_a_shown_difference_is_never_undecided():
    """The loss is shown, that it is within .012 is not, and whether it exceeds .012 is what is left open."""
    pairs = paired(LOSS)
    found = judge([(claim("equivalent", margin=0.012), pairs)])[0]
    assert (found.verdict, found.as_expected) == ("worse", False)
    assert found.words == "worse, by more or less than the margin: open"
    tost = stats.ttest_1samp(LOSS, -0.012, alternative="greater").pvalue
    assert f"difference p = 0.0078 (Holm 0.0078 of 1), TOST p = {tost:.4f} (" in found.sentence
    assert "; whether the loss exceeds 0.012 is open: needs about " in found.sentence
    assert found.p is not None
    assert found.p < 0.05 < found.tost_p  # type: ignore[operator]
    far = judge([(claim("equivalent", margin=0.005), pairs)])[0]
    assert far.words == "worse, beyond the margin"
    near = judge([(claim("equivalent", margin=0.03), pairs)])[0]
    assert near.words == "equivalent within ±0.03, though not zero"
    assert "TOST p" in near.sentence
    assert "difference p" not in near.sentence


@pytest.mark.parametrize("expect", ["better", "worse", "equivalent", "not_worse"])
def test_word_p_and_advice_answer_one_question(expect: str):
    """Over many claims of all sizes: no word against its p or its sign, no seeds promised that could not help."""
    rng = np.random.default_rng(13)
    told: set[str] = set()
    for _ in range(120):
        n, margin = int(rng.integers(2, 9)), float(rng.choice([0.005, 0.01, 0.03, 0.2]))
        effect, sd = float(rng.choice([0, 0.005, 0.02, -0.02, 0.1, -0.1])), float(rng.choice([1e-4, 0.005, 0.03]))
        if rng.random() < 0.5:
            noise, m = float(rng.choice([1e-6, 0.05])), int(rng.choice([3, 20, 200]))
            pairs = mean_items(
                n, m, seed_sd=sd, item_sd=0.1, noise=noise, effect=effect, seed=int(rng.integers(99))
            )
        else:
            pairs = paired(rng.normal(effect, sd, n))
        wanted = expect in ("equivalent", "not_worse") or rng.random() < 0.3
        found = judge([(claim(expect, **({"margin": margin} if wanted else {})), pairs)])[0]
        delta, seeds_help = found.delta_mean, "more seeds (" in found.words or " more seed " in found.words
        told.add(found.verdict)
        assert delta is not None
        if found.verdict in ("better", "worse"):
            assert (delta > 0) == (found.verdict == "better")
            assert expect == "not_worse" or (found.p_adjusted or 0.0) < 0.05
        if found.verdict == "equivalent":
            assert abs(delta) < margin
            assert (found.tost_p_adjusted or 0.0) < 0.05
        if found.verdict == "not worse":
            assert delta > -margin
        if found.verdict == "undecided":
            shown = found.ci_low is not None and (found.ci_low > 0 or found.ci_high < 0)
            assert expect == "not_worse" or not shown, found.sentence
            against = {"better": delta < 0, "worse": delta > 0, "not_worse": delta <= -margin}
            assert not (seeds_help and against.get(expect, abs(delta) >= margin)), found.sentence
    assert {"undecided", "worse", "better"} <= told | ({"better"} if expect == "not_worse" else set())


def test_seeds_that_tell_on_which_side_of_the_margin_a_loss_lies():
    """Beyond it they are those of the distance alone, tested as a difference; within it those of equivalence, whose
    far side is never in doubt: ((1.645 + .842) / (.002625 / .008348))² + 1.4 = 64 seeds, and 8 are there."""
    beyond, distance = (verdict(LOSS, "equivalent", margin=0.012), verdict(np.array(LOSS) + 0.012, "worse"))
    assert distance.words == "undecided: needs about 13 more seeds (up to 29) if the observed effect is true"
    assert beyond.advice == distance.words.replace("undecided", "whether the loss exceeds 0.012 is open")
    assert (beyond.k_more, beyond.k_more_upper) == (distance.k_more, distance.k_more_upper) == (13, 29)
    assert verdict(LOSS, "equivalent", margin=0.02).k_more == 64 - 8
    near = verdict([-loss for loss in LOSS], "equivalent", margin=0.017)
    side, hope = "whether the gain exceeds 0.017 is open", "if the observed effect is true"
    assert (near.advice, near.k_more) == (f"{side}: needs more than 200 more seeds {hope}", None)
    at = PairedSeeds(seeds=(0, 1, 2), treatment=(1.5, 2.0, 2.5), control=(0.0,) * 3)
    assert judge([(claim("equivalent", margin=2.0), at)])[0].advice == "whether the gain exceeds 2.0 is open"


def test_items_may_be_what_leaves_the_margin_open():
    pairs = mean_items(8, 300, seed_sd=0.001, item_sd=0.1, noise=0.01, effect=-0.02)
    found = judge([(claim("equivalent", margin=0.015), pairs)])[0]
    assert found.words.startswith("worse, by more or less than the margin: open")
    assert found.sentence.endswith("whether the loss exceeds 0.015 is open: the 300 items limit it, not the seeds")


@pytest.mark.parametrize(
    ("expect", "deltas", "declared", "advice"),
    [
        ("better", [-0.1, 0.05, -0.12], {}, "the sign is against the claim"),
        ("worse", [0.1, -0.05, 0.12], {}, "the sign is against the claim"),
        ("better", [-0.1, 0.05, -0.12], {"min_effect": 0.1}, "the sign is against the claim"),
        ("better", [-0.1, 0.1], {}, "the observed difference is zero"),
        ("worse", [-0.1, 0.1], {}, "the observed difference is zero"),
        ("equivalent", [0.1, -0.2, 0.5], {"margin": 0.05}, "the estimate lies outside the margin: more seeds would sooner show a difference"),
        ("not_worse", [0.1, -0.2, -0.5], {"margin": 0.05}, "the estimate lies outside the margin: more seeds would sooner show a difference"),
        ("not_worse", [0.3, -0.2, 0.1], {"margin": 0.05}, "needs about 28 more seeds (up to 128) if the observed effect is true"),
        ("not_worse", [0.3, -0.2, 0.1], {"margin": 0.001}, "needs about 84 more seeds (up to more than 200) if the observed effect is true"),
    ],
)  # fmt: skip
def test_advice_never_promises_what_the_estimate_denies(expect, deltas, declared, advice):
    """The last two: room .05 + .0667 of sd .2517, so ((1.645 + .842) / .4636)² + 1.4 = 30.2 seeds, and 3 are there;
    room .001 + .0667, so ((1.645 + .842) / .2688)² + 1.4 = 87.0, and at 2.1 times the sd more than 200."""
    found = verdict(deltas, expect, **declared)
    assert found.words == f"undecided: {advice}"
    assert (found.k_more is None) == ("more seeds (" not in advice)


def test_a_loss_that_is_shown_is_told_with_its_own_p():
    found = verdict([-0.9, -1.0, -0.95, -0.92], "not_worse", margin=0.2)
    assert "worse p < 0.0001" in found.sentence.replace("p <0", "p < 0")
    assert found.worse_p == pytest.approx(
        2 * stats.ttest_1samp([-0.9, -1.0, -0.95, -0.92], -0.2, alternative="less").pvalue
    )


def test_deltas_of_any_size_are_judged():
    for scale in (1e-200, 1e200):
        for sequential in (None, Sequential()):
            small, large = (
                judge(
                    [
                        (
                            claim(),
                            PairedSeeds(
                                seeds=tuple(range(12)),
                                treatment=tuple(size * x for x in DELTAS),
                                control=(0.0,) * 12,
                            ),
                        )
                    ],
                    sequential=sequential,
                )[0]
                for size in (1.0, scale)
            )
            assert (small.verdict, small.test, small.words) == (large.verdict, large.test, large.words)
            assert large.p == pytest.approx(small.p)
            assert large.effect_dz == pytest.approx(small.effect_dz)
            assert large.delta_sd == pytest.approx(scale * small.delta_sd)
            assert large.ci_low == pytest.approx(scale * small.ci_low)
            json.dumps(large.to_dict(), allow_nan=False)


# --- record and words -----------------------------------------------------------------------------------------------


def test_the_record_rebuilds_itself_bit_for_bit():
    family = [
        (claim(margin=0.3), paired([0.1, 0.25, 0.2, 0.15, 0.3, 0.2, 0.25, 0.1, 0.12, 0.2])),
        (
            claim("equivalent", name="H2", margin=0.5),
            pair({s: 0.5 + s / 50 for s in range(19)}, {s: 0.49 + s / 49 for s in range(20)}),
        ),
    ]
    first = [json.dumps(v.to_dict(), sort_keys=True) for v in judge(family)]
    rebuilt = []
    for text in first:
        record = json.loads(text)
        declared = {
            key: record[key]
            for key in ("claim", "treatment", "control", "metric", "expect", "margin", "min_effect")
        }
        columns = {arm: tuple(row[arm] for row in record["per_seed"]) for arm in ("treatment", "control")}
        seeds = tuple(row["seed"] for row in record["per_seed"])
        dropped = tuple((seed, reason) for seed, reason in record["dropped"])
        rebuilt.append((Claim(**declared), PairedSeeds(seeds=seeds, dropped=dropped, **columns)))
    assert [json.dumps(v.to_dict(), sort_keys=True) for v in judge(rebuilt)] == first


def test_the_record_is_strict_json():
    for found in (verdict([]), verdict([0.5] * 4), grown([0.8, 1.1, 0.6]), verdict([0.1, 0.3, 0.2])):
        json.dumps(found.to_dict(), allow_nan=False)


def test_random_parts_ignore_global_state_and_are_equal_in_equal_comparisons():
    rng = np.random.default_rng(5)
    gold = rng.normal(size=60)
    pairs = with_items(gold + rng.normal(size=(3, 60)), gold + rng.normal(size=(3, 60)), "spearman", gold)
    first = judge([(claim(), pairs)])[0]
    np.random.seed(0)  # noqa: NPY002
    assert judge([(claim(), pairs)])[0].v_item == first.v_item
    other = judge([(replace(claim(), metric="another"), pairs)])[0]
    assert other.v_item != first.v_item


def test_a_name_changes_nothing_but_itself():
    rng = np.random.default_rng(5)
    gold = rng.normal(size=60)
    pairs = with_items(gold + rng.normal(size=(3, 60)), gold + rng.normal(size=(3, 60)), "spearman", gold)
    named, renamed = (judge([(claim(name=name), pairs)])[0] for name in ("H1", "H9"))
    assert replace(renamed, claim="H1", family_digest=named.family_digest) == named


def test_unpaired_seeds_say_what_pairing_saves():
    """sd of both arms 1, of the delta .1: 200 times as many unpaired seeds."""
    rng = np.random.default_rng(0)
    common, noise = rng.normal(size=30), 0.1 * rng.normal(size=30)
    pairs = PairedSeeds(seeds=tuple(range(30)), treatment=tuple(common + noise), control=tuple(common))
    found = judge([(claim(), pairs)])[0]
    assert found.correlation == pytest.approx(np.corrcoef(common + noise, common)[0, 1])
    expected = 30 * ((common + noise).var() + common.var()) / noise.var()
    assert found.unpaired_seeds == math.ceil(expected)


def test_the_record_of_a_difference_gives_every_field():
    """Also those with a default, which is for joint claims: nothing of a difference is left out unseen."""
    asked, pairs, rules = claim(), paired(EIGHT), Rules(nulls=1)
    evidence = gather(asked, pairs, rules)
    decision = decide(asked, pairs, evidence, evidence.lines, rules)
    given = record(asked, pairs, evidence, dict(evidence.lines), decision, rules)
    left = {field.name for field in fields(Verdict)} - given.keys()
    assert left == {"words", "sentence", "parts", "part_of"}


def test_interval_of_description_from_ten_seeds_on():
    rng = np.random.default_rng(0)
    assert "bca_low" not in verdict(rng.normal(size=9)).descriptive
    assert {"bca_low", "bca_high", "sign_p", "wilcoxon_p"} == set(verdict(rng.normal(size=10)).descriptive)


@pytest.mark.parametrize(("p", "word"), [(0.05003, "undecided"), (0.04997, "better")])
def test_a_p_near_the_level_says_on_which_side_it_lies(p: float, word: str):
    """At two degrees of freedom p belongs to t = √2 s / √(1 - s²), s = 1 - p; -1, 0 and 1 have an sd of 1."""
    t = math.sqrt(2) * (1 - p) / math.sqrt(1 - (1 - p) ** 2)
    found = verdict(np.array([-1.0, 0.0, 1.0]) + t / math.sqrt(3))
    assert found.verdict == word
    assert f"difference p = {p} (Holm {p} of 1)" in found.sentence
    assert said_p(0.05) == "p = 0.0500"


deltas_of_any_kind = st.lists(st.one_of(st.floats(-2, 2), st.sampled_from([0.0, 0.1, 0.5])), max_size=12)


@settings(deadline=None)
@given(deltas_of_any_kind, st.sampled_from(["better", "worse", "equivalent", "not_worse"]), st.booleans())
def test_words_a_report_may_print(deltas, expect, growing):
    found = judge([(claim(expect, margin=0.2), paired(deltas))], sequential=Sequential() if growing else None)[0]
    for said in (found.words, found.sentence):
        assert not any(word in said.lower() for word in ("significant", "trend", "marginal", "nan"))
    assert ("p =" in found.sentence or "p <" in found.sentence) <= ("n =" in found.sentence)
    if found.p is None:
        assert found.verdict == "undecided"
    json.dumps(found.to_dict(), allow_nan=False)


@settings(deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=2, max_size=18), st.booleans())
def test_swapping_the_arms_mirrors_the_verdict(values, growing):
    pairs = paired(np.array(values) / 50)
    mirrored = replace(pairs, treatment=pairs.control, control=pairs.treatment)
    sequential = Sequential() if growing else None
    a, b = (judge([(claim(margin=0.3), p)], sequential=sequential)[0] for p in (pairs, mirrored))
    assert {"better": "worse", "worse": "better"}.get(a.verdict, a.verdict) == b.verdict
    assert (a.p is None) == (b.p is None)
    if a.p is not None:
        assert a.p == pytest.approx(b.p, rel=1e-9)
        assert a.tost_p is b.tost_p is None or a.tost_p == pytest.approx(b.tost_p, rel=1e-9)
        assert a.e_values == pytest.approx(b.e_values, rel=1e-9)
        assert a.delta_mean == pytest.approx(-b.delta_mean, abs=1e-12)
    if a.ci_low is not None:
        assert (a.ci_low, a.ci_high) == pytest.approx((-b.ci_high, -b.ci_low))
    assert a.effect_dz is None or a.effect_dz == pytest.approx(-b.effect_dz)


@settings(deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=2, max_size=12), st.sampled_from([0.01, 3.0, 100.0]))
def test_units_do_not_matter(values, scale):
    pairs = paired(np.array(values) / 50)
    scaled = replace(
        pairs, treatment=tuple(scale * x for x in pairs.treatment), control=tuple(scale * x for x in pairs.control)
    )
    a, b = (judge([(claim(), p)])[0] for p in (pairs, scaled))
    assert a.verdict == b.verdict
    assert a.p == (None if b.p is None else pytest.approx(b.p, rel=1e-6))
    assert a.effect_dz == (None if b.effect_dz is None else pytest.approx(b.effect_dz, rel=1e-6))


# --- error rates ----------------------------------------------------------------------------------------------------


def test_crossed_t_keeps_its_level_where_seeds_alone_do_not():
    """500 items, sd of seed effect .004, item effect .30, residual .30; three seeds; the null is true."""
    from evaluators.significance.item_tests import crossed_t, mean_item_variance
    from evaluators.significance.seed_tests import paired_t

    rng = np.random.default_rng(1)
    crossed, alone = [], []
    for _ in range(500):
        d = rng.normal(0, 0.004, (3, 1)) + rng.normal(0, 0.3, 500) + rng.normal(0, 0.3, (3, 500))
        both = (np.mean([mean_item_variance(row[None]) for row in d]) - mean_item_variance(d)) / (len(d) - 1)
        crossed.append(crossed_t(d.mean(1), mean_item_variance(d), 500, both).p)
        alone.append(paired_t(d.mean(1)).p)
    assert np.mean(np.array(crossed) <= 0.05) < 0.08
    assert np.mean(np.array(alone) <= 0.05) > 0.12


def test_an_auc_of_two_positives_keeps_its_level():
    """2 positives of 102, the null is true: read with all items' degrees of freedom it is rejected in a fourth."""
    rng, gold = np.random.default_rng(1), np.repeat([1.0, 0.0], [2, 100])
    found = []
    for _ in range(60):
        items = gold + rng.normal(0, 0.5, 102)
        arms = [items + rng.normal(0, 0.7, 102) + rng.normal(0, 0.2, (8, 102)) for _ in range(2)]
        found += judge([(claim(), with_items(*arms, "auc", gold))])
    assert {(one.n_groups, one.df_items) for one in found} == {(102, 1)}
    assert np.mean([one.p <= 0.05 for one in found]) < 0.08  # type: ignore[operator]


def test_three_paired_seeds_by_hand():
    """Deltas .02, .02 and -.01 have mean .01 and variance (1 + 1 + 4) / 20,000; two of three agree with the mean."""
    pairs = pair({0: 0.5, 1: 0.62, 2: 0.4}, {0: 0.48, 1: 0.6, 2: 0.41})
    assert pairs.deltas == pytest.approx([0.02, 0.02, -0.01])
    found = judge([(claim(), pairs)])[0]
    assert (found.delta_mean, found.delta_sd) == pytest.approx((0.01, 0.01732050808), abs=1e-10)
    assert (found.k_agree, found.n_seeds, found.df, found.cs_low, found.cs_high) == (2, 3, 2, None, None)
    dz, j = 1 / math.sqrt(3), 1 / math.sqrt(math.pi)  # J of two degrees of freedom: Γ(1) / (√1 Γ(½))
    assert (found.effect_dz, found.hedges_g, found.statistic) == pytest.approx((dz, j * dz, math.sqrt(3) * dz))
    assert found.correlation == pytest.approx(np.corrcoef(pairs.treatment, pairs.control)[0, 1])


def test_seeds_agree_with_what_is_shown_where_later_ones_took_the_mean_elsewhere():
    """The first six show a gain and eight later ones lose more: 7 of 14 gained, and the mean is a loss."""
    deltas = [1.0, 1.5, 0.7, 1.2, 0.9, 1.3, -2.5, -3.0, -2.0, -3.5, -2.5, -1.0, 0.5, -1.5]
    found = judge([(claim(), paired(deltas))], sequential=Sequential(n_max=14))[0]
    assert (found.verdict, found.k_agree, found.sign_agreement) == ("better", 7, 0.5)
    assert found.delta_mean < 0 < found.ci_low
    told = " (later seeds took the mean of all out of the interval, which holds at every look)"
    assert found.words == f"better{told}"
    assert found.sentence.endswith(told)


@pytest.mark.parametrize(
    ("deltas", "words"),
    [
        ([0.0, 0.0, 0.0], "identical results"),
        ([1e-4, 2e-4, 1e-4], "the arms differ by no more than the rounding of scores of this size"),
    ],
)
def test_only_equal_scores_are_called_identical(deltas: list[float], words: str):
    control = np.array([1e9, 1e9 + 1, 1e9 + 2])
    pairs = PairedSeeds(seeds=(0, 1, 2), treatment=tuple(control + deltas), control=tuple(control))
    found = judge([(claim(), pairs)])[0]
    assert found.words == f"undecided: {words}"
    assert ("the same at every seed" in found.sentence) == (deltas[0] == 0)


@pytest.mark.parametrize("power", [665, -665])
def test_correlations_of_figures_of_any_size_are_judged_alike(power: int):
    """At 1e200 squares overflow, at 1e-200 they vanish; to multiply by a power of two changes no digit."""
    rng = np.random.default_rng(4)
    gold = rng.normal(size=50)
    arms = [gold + noise * rng.normal(size=(3, 50)) for noise in (0.5, 1.0)]
    plain, sized = (
        judge([(claim(), with_items(*(np.ldexp(arm, by) for arm in arms), "pearson", np.ldexp(gold, by)))])[0]
        for by in (0, power)
    )
    assert plain.p is not None
    assert sized.to_dict() == plain.to_dict()
