import math

import pytest

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds, pair


def test_pairs_are_complete_in_the_planned_order():
    pairs = pair({1: 0.5, 2: 0.6, 3: math.nan, 4: 0.8}, {1: 0.4, 2: None, 3: 0.3, 5: 0.2}, seeds=[4, 3, 2, 1, 9])
    assert pairs.seeds == (1,)
    assert pairs.deltas == pytest.approx([0.1])
    assert pairs.dropped == (
        (4, "control: no finished run"),
        (3, "treatment: its run yielded no such figure"),
        (2, "control: no finished run"),
        (9, "both arms: no finished run"),
    )


def test_an_infinite_score_is_named():
    assert pair({0: math.inf}, {0: 1.0}).dropped == ((0, "treatment: the score is inf"),)


def test_runs_that_differ_in_more_than_declared_do_not_pair():
    pairs = pair({0: 0.5, 1: 0.6}, {0: 0.4, 1: 0.4}, differing={1: {"steps", "corpus"}})
    assert pairs.dropped == ((1, "pairing: runs differ in corpus, steps"),)


def test_an_untrained_arm_has_its_value_at_every_seed():
    pairs = pair({3: 0.5, 7: 0.6}, 0.4)
    assert (pairs.seeds, pairs.control) == ((3, 7), (0.4, 0.4))
    assert pair({8: 0.5, 1: 0.6}, 0.4).seeds == (1, 8)  # ascending where no order was planned
    assert not pairs.frozen
    assert pair(0.5, 0.4, seeds=[0, 1]).frozen


def test_a_metric_that_is_better_when_smaller():
    assert pair({0: 0.2}, {0: 0.5}, larger_is_better=False).deltas == pytest.approx([0.3])


def test_repeated_seeds():
    assert pair([(0, 0.5), (0, 0.5)], {0: 0.4}).treatment == (0.5,)
    assert pair([(0, math.nan), (0, math.nan)], {0: 0.4}).dropped
    for other in (0.6, math.nan, None):
        with pytest.raises(ValueError, match="treatment: seed 0 has two values"):
            pair([(0, 0.5), (0, other)], {0: 0.4})
    with pytest.raises(ValueError, match="repeated"):
        PairedSeeds(seeds=(1, 1), treatment=(0.1, 0.2), control=(0.1, 0.2))


@pytest.mark.parametrize(
    ("treatment_missing", "control_missing", "expected"),
    [([], [], False), ([0], [], False), ([0, 1], [], True), ([0], [1], False), ([0], [1, 2], True)],
)
def test_failures_of_one_arm_count_against_the_comparison(treatment_missing, control_missing, expected):
    treatment = {s: 0.5 + s for s in range(20) if s not in treatment_missing}
    control = {s: 0.4 for s in range(20) if s not in control_missing}
    assert pair(treatment, control).runs_missing == expected


def test_more_than_a_fifth_of_incomplete_pairs():
    seeds = range(5)
    assert not pair({0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}, seeds=seeds).runs_missing
    assert pair({0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.1, 1: 0.2, 2: 0.3}, seeds=seeds).runs_missing


def test_the_matched_control_must_be_complete_too():
    pairs = pair({0: 0.5, 1: 0.6}, {0: 0.4, 1: 0.4}, matched_control={1: 0.45})
    assert (pairs.seeds, pairs.matched_control) == ((1,), (0.45,))
    assert pairs.dropped == ((0, "matched control: no finished run"),)
    assert pairs.matched_deltas == pytest.approx([0.15])


def test_scores_must_be_finite_and_as_many_as_seeds():
    for scores in ((0.1,), (0.1, math.nan)):
        with pytest.raises(ValueError, match="one finite score"):
            PairedSeeds(seeds=(0, 1), treatment=scores, control=(0.1, 0.2))


def test_claims_are_checked_where_they_are_declared():
    def claim(**given):
        return Claim(
            **{"claim": "H1", "treatment": "A", "control": "B", "metric": "m", "expect": "better"} | given
        )

    with pytest.raises(ValueError, match="margin: with expect equivalent"):
        claim(expect="equivalent")
    with pytest.raises(ValueError, match="above 0"):
        claim(margin=0.0)
    with pytest.raises(ValueError, match="signal: what the matched control lacks"):
        claim(matched_control="C")
    with pytest.raises(ValueError, match="expect: better"):
        claim(expect="equivalent", margin=0.1, matched_control="C", signal="negatives")
