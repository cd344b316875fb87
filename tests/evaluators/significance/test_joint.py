"""Several claims as one: the p of a partial conjunction by arithmetic, and what the words say of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluators.significance.claims import Claim, Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.joint import partial_conjunction
from evaluators.significance.judge import judge
from evaluators.significance.verdict import Verdict

GAIN, LOSS, NOISE = [0.8, 1.1, 0.6, 0.9], [-0.8, -1.1, -0.6, -0.9], [0.1, -0.2, 0.05, 0.02]


def part(name: str, expect: str = "better", **more: object) -> Claim:
    return Claim(claim=name, treatment="A", control="B", metric=name, expect=expect, **more)  # type: ignore[arg-type]


def paired(deltas: list[float]) -> PairedSeeds:
    control = np.array([0.1, 0.3, 0.2, 0.5])
    return PairedSeeds(seeds=(0, 1, 2, 3), treatment=tuple(control + deltas), control=tuple(control))


def judged(*deltas: list[float], least: int | None = None, parts: tuple[Claim, ...] = ()) -> list[Verdict]:
    declared = parts or tuple(part(f"P{k}") for k in range(len(deltas)))
    return judge([(Joint(claim="J", all=declared, at_least=least), [paired(one) for one in deltas])])


@pytest.mark.parametrize(
    ("least", "expected"), [(1, 3 * 0.01), (2, 2 * 0.02), (3, 0.04)]
)  # (n - u + 1) p_(u), Benjamini and Heller 2008
def test_a_partial_conjunction_by_hand(least: int, expected: float):
    assert partial_conjunction([0.04, 0.01, 0.02], least) == pytest.approx(expected)
    assert math.isnan(partial_conjunction([0.04, math.nan, math.nan], 2))
    assert partial_conjunction([0.04, math.nan], 1) == pytest.approx(0.08)
    assert partial_conjunction([math.nan, 0.04, 0.01], 2) == pytest.approx(2 * 0.04)


@given(st.lists(st.floats(1e-6, 1), min_size=2, max_size=6))
def test_more_is_never_easier_to_show(p: list[float]):
    """All of n is the largest p; at least one is Bonferroni's."""
    assert partial_conjunction(p, len(p)) == max(p)
    assert partial_conjunction(p, 1) == pytest.approx(min(1.0, len(p) * min(p)))


def test_all_must_hold():
    joint, *parts = judged(GAIN, GAIN)
    assert (joint.verdict, joint.words, joint.test) == ("holds", "holds: all of 2", "intersection-union")
    assert joint.p == max(one.p for one in parts if one.p is not None)
    assert joint.as_expected
    assert [(one.verdict, one.part_of, one.family_size) for one in parts] == [("better", "J", 1)] * 2
    assert judged(GAIN, NOISE)[0].words == "undecided: 1 of 2 parts shown, 2 asked; open: P1"


def test_only_what_is_undecided_is_open():
    """A part that was found to be equivalent, or the other way round, is decided, and otherwise than was claimed."""
    parts = (part("P0"), part("P1"), part("P2", margin=0.5))
    joint, *found = judged(NOISE, LOSS, [0.01, -0.02, 0.0, 0.01], least=2, parts=parts)
    assert [one.verdict for one in found] == ["undecided", "worse", "equivalent"]
    assert joint.words == "undecided: 0 of 3 parts shown, 2 asked; open: P0; otherwise: P1, P2"


def test_a_part_the_other_way_refutes_all_of_them():
    joint, *_ = judged(GAIN, LOSS)
    assert (joint.verdict, joint.as_expected, joint.words) == ("fails", False, "fails: not all of 2 hold")
    assert "fails p = " in joint.sentence
    assert judged(GAIN, LOSS, least=1)[0].verdict == "holds"


def test_at_least_so_many():
    assert judged(GAIN, GAIN, NOISE, least=2)[0].words == "holds: at least 2 of 3"
    assert judged(GAIN, NOISE, NOISE, least=2)[0].verdict == "undecided"
    fails = judged(LOSS, LOSS, NOISE, least=2)[0]
    assert (fails.verdict, fails.words) == ("fails", "fails: fewer than 2 of 3 hold")


def test_parts_that_are_shown_alone_and_not_together():
    """Two p values a little below the level: at least one of the two is true at twice the smaller of them."""
    weak = [0.3, 0.9, 0.5, 1.2]
    joint, *parts = judged(weak, weak, least=1)
    assert [one.verdict for one in parts] == ["better", "better"]
    assert all(0.025 < (one.p or 0) < 0.05 for one in parts)
    assert joint.p == pytest.approx(2 * (parts[0].p or 0))
    assert joint.words == "undecided: 2 of 2 parts shown, 1 asked; taken together their p is above 0.05"
    assert "together" not in judged(GAIN, NOISE, NOISE, least=2)[0].words
    shown = "2 of 3 parts shown, 2 asked; taken together their p is above 0.05; open: P2"
    assert judged(weak, weak, NOISE, least=2)[0].words == f"undecided: {shown}"


def test_parts_of_other_kinds():
    """Better on one metric, equivalent on another."""
    parts = (part("rank"), part("cost", "equivalent", margin=0.5))
    joint, better, equal = judged(GAIN, NOISE, parts=parts)
    assert (joint.verdict, better.verdict, equal.verdict) == ("holds", "better", "equivalent")
    assert joint.p == max(better.p or 0, equal.tost_p or 0)
    assert judged(GAIN, LOSS, parts=(parts[0], part("cost", "not_worse", margin=0.1)))[0].verdict == "fails"
    worse = (part("rank"), part("cost", "worse"))
    assert [judged(GAIN, other, parts=worse)[0].verdict for other in (LOSS, GAIN)] == ["holds", "fails"]


@pytest.mark.parametrize("deltas", [GAIN, LOSS])
def test_a_part_beyond_its_margin_refutes_that_it_is_equivalent(deltas: list[float]):
    """Tested on either side of the margin, so twice, as one of two parts, so twice again."""
    parts = (part("rank"), part("cost", "equivalent", margin=0.1))
    joint, *_ = judged(GAIN, deltas, parts=parts)
    beyond = stats.ttest_1samp(np.abs(deltas), 0.1, alternative="greater").pvalue
    assert (joint.verdict, joint.p) == ("fails", pytest.approx(4 * beyond))
    equal = judged(GAIN, [0.5] * 4, parts=parts)[0]  # no noise to hold against the margin
    assert (equal.words, equal.p) == ("undecided: 1 of 2 parts shown, 2 asked; open: cost", None)


def test_a_gain_that_is_not_due_to_its_signal_does_not_hold():
    """Far above the control, as far below the matched one."""
    signal = part("P0", matched_control="C", signal="it")
    pairs = paired(GAIN)
    below = replace(pairs, matched_control=tuple(np.array(pairs.treatment) - LOSS))
    above = replace(pairs, matched_control=tuple(np.array(pairs.treatment) - GAIN))
    both = Joint(claim="J", all=(signal, part("P1")))
    words = "undecided: 1 of 2 parts shown, 2 asked; otherwise: P0"
    assert judge([(both, [below, paired(GAIN)])])[0].words == words
    assert judge([(both, [above, paired(GAIN)])])[0].verdict == "holds"
    assert judge([(both, [replace(above, selected=True), paired(GAIN)])])[0].p is None


def test_it_counts_once_and_is_corrected():
    joint = Joint(claim="J", all=(part("P0"), part("P1")), family="ranking")
    found = judge([(joint, [paired(GAIN), paired(GAIN)]), (part("H", family="ranking"), paired(NOISE))])
    assert [one.claim for one in found] == ["J", "P0", "P1", "H"]
    assert [one.family_size for one in found] == [2, 1, 1, 2]
    assert [one.group for one in found] == ["ranking", "", "", "ranking"]
    assert found[0].p_adjusted == pytest.approx(2 * (found[0].p or 0))
    weak = [0.3, 0.9, 0.5, 1.2]
    kept_back = judge([(joint, [paired(weak)] * 2), (part("H", family="ranking"), paired(NOISE))])[0]
    assert kept_back.words == (
        "undecided: 2 of 2 parts shown, 2 asked; the correction over the claims of its group keeps it back"
    )


def test_without_runs_nothing_holds():
    pairs = PairedSeeds(seeds=(), treatment=(), control=())
    joint, *_ = judge([(Joint(claim="J", all=(part("P0"), part("P1"))), [pairs, paired(GAIN)])])
    assert joint.words == "undecided: no complete pair (family incomplete: 0 of 1)"
    assert joint.p is None
    assert joint.to_dict()["test"] is None
