"""Stopping for futility: the chance that is left, by an integral of its own, and what it may never do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from evaluators.significance.claims import Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.futility import HOPELESS, chance_left, joint_chance, may_stop
from evaluators.significance.judge import judge
from evaluators.significance.sequential import Sequential, e_values
from evaluators.significance.verdict import Verdict
from tests.paired_claims import claim

SEEN = np.array([0.4, -0.1, 0.7, 0.3, 0.5, 0.2, 0.35])


def chance(deltas: np.ndarray, worth: float, n_max: int, draws: int = 1000) -> float:
    return chance_left(deltas, worth, n_max=n_max, rng=np.random.default_rng(5), tau2=2.0, draws=draws)


def paired(deltas: np.ndarray) -> PairedSeeds:
    control = np.sin(np.arange(len(deltas)))
    return PairedSeeds(seeds=tuple(range(len(deltas))), treatment=tuple(control + deltas), control=tuple(control))


def judged(deltas: np.ndarray, rule: Sequential | None = None, expect: str = "better", **more: object) -> Verdict:
    return judge([(claim(expect, **more), paired(deltas))], sequential=rule or Sequential(start=5))[0]


@pytest.mark.parametrize("worth", [0.2, 0.6, 0.9])
def test_the_chance_of_one_more_seed_is_a_tail_of_student_s_t(worth: float) -> None:
    """With the true difference given, the next delta less that, over √(Σ(d - true)²/n), is t with n degrees."""
    true, n = max(worth, SEEN.mean()), len(SEEN)

    def short(value: float) -> float:
        return float(np.log(0.05 * e_values(np.append(SEEN, value), 2.0)[-1]))

    values = np.linspace(-3, 6, 4001)  # the e-value rises with the delta, and falls again where it is an outlier
    crossing = np.array([short(value) >= 0 for value in values])
    edges = [
        optimize.brentq(short, values[k], values[k + 1]) for k in np.flatnonzero(crossing[1:] != crossing[:-1])
    ]
    law = stats.t(df=n, loc=true, scale=np.sqrt(np.square(SEEN - true).sum() / n))
    low, high = edges[0], edges[1] if len(edges) > 1 else np.inf
    assert chance(SEEN, worth, n + 1, draws=200_000) == pytest.approx(law.cdf(high) - law.cdf(low), abs=0.004)


def test_what_was_shown_already_stays_shown() -> None:
    crossed = np.array([1.0, 1.1, 0.9, 1.05, 0.95, -3.0])
    assert e_values(crossed, 2.0).max() > 20 > e_values(crossed, 2.0)[-1]
    for unit in (1.0, 0.01):
        assert chance(unit * crossed, unit * 0.1, 20) == 1.0
        assert chance(-unit * crossed, unit * 0.1, 20) < 0.5  # it was shown to be a loss


def test_a_difference_the_other_way_leaves_no_chance() -> None:
    assert chance(-SEEN, 0.1, 12) < 0.01
    assert chance(-SEEN, 0.4, 20) < chance(SEEN - SEEN.mean(), 0.4, 20) < chance(SEEN, 0.4, 20)


@given(st.floats(1e-6, 1e6), st.floats(0.05, 2.0))
def test_the_unit_of_the_metric_changes_nothing(unit: float, worth: float) -> None:
    assert chance(unit * SEEN, unit * worth, 12) == pytest.approx(chance(SEEN, worth, 12), abs=2e-3)


def test_the_chance_of_a_joint_claim_by_hand() -> None:
    assert joint_chance([0.5, 0.05, 1.0], 3) == 0.05  # all three: no more than the least
    assert joint_chance([0.5, 0.05, 1.0], 2) == pytest.approx(0.55)
    assert joint_chance([0.5, 0.05, 1.0], 1) == 1.0


def test_what_may_stop() -> None:
    assert may_stop(claim(min_effect=0.1))
    assert may_stop(claim("worse", min_effect=0.1))
    assert not may_stop(claim())
    assert not may_stop(claim(min_effect=0.1, margin=0.2))  # it may still be found equivalent
    assert not may_stop(claim("equivalent", min_effect=0.1, margin=0.2))


def test_the_words_and_when_they_are_said() -> None:
    level = np.array([0.1, -0.2, 0.05, 0.15, -0.1, 0.0, -0.15])
    found = judged(level, min_effect=0.1)
    assert found.hopeless
    assert found.chance_left is not None
    assert found.chance_left < HOPELESS
    assert found.words.startswith(
        "undecided: stopped for futility: were the true difference 0.1, the smallest worth reporting, all 20 seeds "
        "would show it in"
    )
    assert found.k_more is None
    assert not judged(level, Sequential(start=8), min_effect=0.1).hopeless  # these seeds run whatever they show
    assert not judged(level, Sequential(n_max=7), min_effect=0.1).hopeless  # all are there
    assert not judged(level).hopeless
    assert not judge([(claim(min_effect=0.1), paired(level))])[
        0
    ].hopeless  # seeds that are not added while looking
    assert judged(-SEEN, expect="worse", min_effect=0.1).chance_left == judged(SEEN, min_effect=0.1).chance_left
    alternating = np.tile([0.9, -0.5], 6)
    # Of 20,000 simulated ends of such a study 13.2 %, 5.6 % and 0.005 % show it.
    for n, cases in ((6, None), (8, "6 %"), (12, "fewer than 1 %")):
        found = judged(alternating[:n], min_effect=0.5)
        assert found.chance_left is not None
        assert found.words.endswith(f"would show it in {cases} of cases") == found.hopeless == (cases is not None)
    equal = judged(np.full(5, 0.5), min_effect=0.6)
    assert equal.chance_left is None
    assert "seeds are added until some differ" in equal.words
    large = judged(np.tile([0.9, -0.5], 4), min_effect=0.01)
    assert "were the observed difference the true one" in large.words


@given(st.integers(0, 10_000), st.floats(-1.0, 3.0), st.integers(5, 20))
def test_no_verdict_is_turned_away(seed: int, effect: float, n: int) -> None:
    """With a smallest effect or without, the same scores are shown or not; only what is open may stop."""
    deltas = np.random.default_rng(seed).normal(effect, 1, n)
    with_it, without = judged(deltas, min_effect=0.8), judged(deltas)
    assert (with_it.verdict, with_it.p_adjusted) == (without.verdict, without.p_adjusted)
    assert not (with_it.hopeless and with_it.verdict != "undecided")


def test_a_joint_claim_stops_where_too_few_parts_have_a_chance() -> None:
    rng, rule = np.random.default_rng(3), Sequential(start=5)
    strong, level = paired(rng.normal(3, 0.5, 9)), paired(rng.normal(-0.5, 0.5, 9))
    parts = [replace(claim(min_effect=0.8), claim=f"H.{k}", metric=f"score {k}") for k in (1, 2)]
    both = judge([(Joint(claim="H", all=tuple(parts)), (strong, level))], sequential=rule)
    assert [one.verdict for one in both] == ["undecided", "better", "undecided"]
    assert both[0].hopeless
    assert both[0].words == "undecided: stopped for futility: 1 of 2 parts shown, 2 asked; futile: H.2"
    assert "futile: were the true difference 0.8" in both[2].words
    one = judge([(Joint(claim="H", all=tuple(parts), at_least=1), (level, level))], sequential=rule)[0]
    assert one.hopeless
    still = paired(np.array([0.4, -0.1, 0.9, 0.3, 0.2, -0.2, 0.7]))  # undecided, with a chance
    mixed = judge([(Joint(claim="H", all=tuple(parts)), (still, level))], sequential=rule)[0]
    assert mixed.words == "undecided: stopped for futility: 0 of 2 parts shown, 2 asked; futile: H.2"
    open_ = judge([(Joint(claim="H", all=tuple(parts)), (strong, still))], sequential=rule)[0]
    assert open_.words == "undecided: 1 of 2 parts shown, 2 asked; open: H.2"
    assert (open_.hopeless, open_.chance_left is None) == (False, False)
    bare = [parts[0], replace(parts[1], min_effect=None)]  # of the second nothing is known: it may yet be shown
    assert not judge([(Joint(claim="H", all=tuple(bare), at_least=1), (level, level))], sequential=rule)[
        0
    ].hopeless
