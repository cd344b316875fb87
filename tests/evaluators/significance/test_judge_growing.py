"""Verdicts of a study whose seeds grow until its claims are decided."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluators.significance.claims import Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.judge import judge
from evaluators.significance.sequential import Sequential
from tests.paired_claims import claim, grown, mean_items, paired, verdict, with_items


def test_sequential_verdicts():
    rng = np.random.default_rng(0)
    strong = grown(rng.normal(2, 0.5, size=8))
    assert (strong.verdict, strong.test, strong.scope) == ("better", "t e-process", "on this test set")
    assert strong.p == pytest.approx(min(1, 1 / max(strong.e_values)))
    assert len(strong.e_values) == 8
    assert strong.cs_low > 0  # type: ignore[operator]
    assert grown(-rng.normal(2, 0.5, size=8)).verdict == "worse"
    assert grown(rng.normal(0, 0.05, size=10), "equivalent", margin=0.3).verdict == "equivalent"
    assert grown(rng.normal(0, 0.05, size=10), margin=0.3).words == "equivalent within ±0.3"


def test_sequential_does_not_stop_where_a_fixed_test_would():
    deltas = [0.8, 1.1, 0.6]
    assert verdict(deltas).verdict == "better"
    early = grown(deltas)
    assert early.verdict == "undecided"
    assert early.ci_low is None  # three seeds give no interval at any time
    assert early.k_more is not None


def seeds_crossing(room: float, variance: float) -> int:
    """n seeds of mean `room` have t² = n room² / s², and E_n = r^(-1/2) [(1 + t²/(n-1)) / (1 + t²/((n-1) r))]^(n/2)
    with r = 1 + 2n, which crosses 1 / .05."""
    x = {n: n * room**2 / variance / (n - 1) for n in range(2, 60)}
    e = {n: (1 + 2 * n) ** -0.5 * ((1 + x[n]) / (1 + x[n] / (1 + 2 * n))) ** (n / 2) for n in x}
    return next(n for n in e if e[n] >= 20)


@pytest.mark.parametrize(
    ("expect", "declared", "room"),
    [
        ("equivalent", {"margin": 0.3}, 0.25),
        ("not_worse", {"margin": 0.15}, 0.2),
        ("better", {"min_effect": 0.3}, 0.3),
        ("better", {"margin": 0.25}, 0.25),
        ("better", {"margin": 0.25, "min_effect": 0.2}, 0.2),
    ],
)
def test_sequential_needs_the_seeds_at_which_the_e_process_crosses(expect, declared, room):
    """The mean is .05, the nearest mean to be excluded lies `room` away."""
    deltas = [0.1, -0.1, 0.25, -0.05]
    variance = float(np.var(deltas, ddof=1))
    upper = variance * 3 / stats.chi2.ppf(0.2, 3)  # its upper 80 % limit
    found = judge([(claim(expect, **declared), paired(deltas))], sequential=Sequential(n_max=60))[0]
    assert (found.k_more, found.k_more_upper) == (
        seeds_crossing(room, variance) - 4,
        seeds_crossing(room, upper) - 4,
    )


def test_a_maximum_that_may_not_be_enough_is_named():
    deltas = [0.1, -0.3, 0.25, -0.15]
    variance = float(np.var(deltas, ddof=1))
    assert seeds_crossing(0.3, variance) == 4 + 7
    assert seeds_crossing(0.3, variance * 3 / stats.chi2.ppf(0.2, 3)) > 20
    near = grown(deltas, "worse", margin=0.5, min_effect=0.3)
    assert near.words == "undecided: needs about 7 more seeds (or more than the declared maximum of 20 allows)"


def test_sequential_ends_at_its_maximum():
    rng = np.random.default_rng(1)
    found = grown(rng.normal(0, 1, size=20))
    assert found.words == "undecided: the declared maximum of 20 seeds is reached"
    gain = rng.normal(1, 0.3, size=20)
    for n, told in ((19, "of 20 seeds may not settle this"), (20, "of 20 seeds is reached")):
        open_ = grown(gain[:n], "equivalent", margin=1.0)
        assert open_.verdict == "better"
        assert open_.advice == f"whether the gain exceeds 1.0 is open: the declared maximum {told}"


def test_sequential_says_when_seeds_contradict_each_other():
    """Shown at seven seeds, and then the other way round: neither is what the deltas say."""
    deltas = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0]
    assert grown(deltas).verdict == "better"
    for expect, declared in (("better", {}), ("equivalent", {"margin": 0.15}), ("not_worse", {"margin": 0.15})):
        found = grown([*deltas, *[-1.0, -1.01, -0.99] * 4], expect, **declared)
        assert found.words.startswith("undecided: later seeds contradict earlier ones")
        assert (found.p, found.p_adjusted, found.tost_p, found.ci_low) == (None, None, None, None)


def test_sequential_never_stops_on_equal_deltas():
    """Nor where a fixed number of seeds would, six by their signs: then a seventh could take the verdict back."""
    assert verdict([0.5] * 6).verdict == "better"
    for n in (5, 6, 12):
        found = grown([0.5] * n)
        assert (found.verdict, found.flags) == ("undecided", ("degenerate",))
        assert (found.test, found.p) == ("t e-process", 1.0)
        assert "seeds are added until some differ" in found.words


def test_equal_deltas_show_nothing_after_the_first_that_differs():
    """Of scores near 60, a gain of .001 at seven seeds has a spread: that of their rounding."""
    control = (61.3, 68.7, 60.1, 65.9, 62.4, 67.2, 60.6, 61.1)
    treatment = (*(score + 0.001 for score in control[:7]), control[7] + 0.3)
    pairs = PairedSeeds(seeds=tuple(range(8)), treatment=treatment, control=control)
    found = judge([(claim(), pairs)], sequential=Sequential())[0]
    assert found.e_values[:7] == (1.0,) * 7
    assert found.verdict == "undecided"


@pytest.mark.parametrize("sequential", [None, Sequential()])
def test_who_asks_for_one_claim_is_told_what_all_are_told(sequential: Sequential | None):
    """Of the others only the p values are computed, by a shorter way."""
    items = mean_items(5, 60, seed_sd=0.02, item_sd=0.2, noise=0.05, effect=0.12)
    assert items.items is not None
    lower = replace(items.items, control=items.items.control - 0.05)
    matched = replace(items, matched_control=tuple(lower.control.mean(1)), matched_items=lower)
    row = np.random.default_rng(0).normal(size=(2, 1, 60))
    family = [
        (claim(name="items"), items),
        (claim("equivalent", name="same", margin=0.5), items),
        (claim("not_worse", name="set", margin=0.1, scope="test_set"), items),
        (claim(name="due", matched_control="C", signal="roles"), matched),
        (claim(name="frozen"), with_items(*np.repeat(row, 3, 1))),
        (claim(name="seeds"), paired([0.8, 1.1, 0.6, 0.9])),
        (
            Joint(claim="both", all=(claim(name="one"), replace(claim(name="two"), metric="another"))),
            [items, items],
        ),
    ]
    told = judge(family, sequential=sequential)
    for declared, _ in family:
        names = {declared.claim, *(part.claim for part in declared.parts)}
        for name in names:
            assert judge(family, sequential=sequential, asked=name) == [one for one in told if one.claim in names]
