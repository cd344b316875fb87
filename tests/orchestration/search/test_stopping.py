"""The rules of early stopping, by hand and as properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.search.stopping import goes_on
from orchestration.study.blocks import StopEarly

MEDIAN = StopEarly(rule="median", at=(1, 2, 3), least=3)
ASHA = StopEarly(rule="asha", at=(1, 2, 3), least=3)
OTHERS = [[0.2, 0.4], [0.3, 0.5, 0.6], [0.4, 0.8], [0.1]]  # means after two looks: 0.3, 0.4, 0.6


@pytest.mark.parametrize(
    ("rule", "curve", "expected"),
    [
        (MEDIAN, [0.1, 0.41], True),  # its best so far is above the median of the means, 0.4
        (MEDIAN, [0.41, 0.1], True),  # also where it was better before
        (MEDIAN, [0.1, 0.4], True),
        (MEDIAN, [0.1, 0.39], False),
        (MEDIAN, [0.1, math.nan], False),
        (ASHA, [0.1, 0.81], True),  # one of four
        (ASHA, [0.9, 0.79], False),
        (StopEarly(rule="asha", at=(1, 2), least=3, eta=2), [0.1, 0.5], True),  # two of four
        (StopEarly(rule="asha", at=(1, 2), least=3, eta=2), [0.1, 0.49], False),
        (StopEarly(rule="asha", at=(1, 2), least=3, eta=2), [0.9, 0.5], True),  # what it was before does not count
        (StopEarly(rule="asha", at=(1, 2, 3), least=1), [0.1, 0.9, 0.61], True),  # one of two
        (StopEarly(rule="asha", at=(1, 2, 3), least=1), [0.1, 0.9, 0.59], False),
        (ASHA, [0.9, math.inf], False),
        (MEDIAN, [0.1, 0.1, 0.1], True),  # one other run came so far: too few to judge by
    ],
)
def test_by_hand(rule: StopEarly, curve: list[float], expected: bool) -> None:
    assert goes_on(rule, curve, OTHERS) is expected


@pytest.mark.parametrize("rule", [MEDIAN, ASHA])
def test_runs_that_diverged_stop_no_other(rule: StopEarly) -> None:
    assert goes_on(rule, [0.1, 0.1], [[0.9, lost] for lost in (math.nan, math.inf, math.nan)])


scores = st.floats(0, 1)
curves = st.lists(st.lists(scores, min_size=2, max_size=3), min_size=1, max_size=12)


@given(st.sampled_from(["median", "asha"]), curves)
def test_the_best_goes_on_and_of_many_equals_all_do(rule: str, others: list[list[float]]) -> None:
    asked = StopEarly(rule=rule, at=(1, 2, 3), least=1)  # type: ignore[arg-type]
    top = max(max(other) for other in others)
    assert goes_on(asked, [top, top], others)
    assert goes_on(asked, others[0][:2], [others[0]] * 5)


@given(st.sampled_from(["median", "asha"]), curves, st.tuples(scores, scores), scores)
def test_a_better_curve_is_never_stopped_where_a_worse_one_goes_on(
    rule: str, others: list[list[float]], curve: tuple[float, float], more: float
) -> None:
    asked = StopEarly(rule=rule, at=(1, 2, 3), least=1)  # type: ignore[arg-type]
    if goes_on(asked, curve, others):
        assert goes_on(asked, [curve[0], curve[1] + more], others)


@pytest.mark.parametrize(("at", "eta"), [((), None), ((2, 2), None), ((3, 1), None), ((1,), 3)])
def test_what_is_not_accepted(at: tuple[int, ...], eta: int | None) -> None:
    with pytest.raises(ValueError, match=r"^(at|eta): "):
        StopEarly(rule="median", at=at, eta=eta)
