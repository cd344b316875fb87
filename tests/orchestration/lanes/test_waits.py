"""For how long a lane has stood still: by its answers, and by no sleep of the driver."""

from __future__ import annotations

import time

import pytest

from orchestration.lanes.waits import LONGEST_GAP, Stillness


def test_stillness_begins_anew_with_each_answer_that_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    still = Stillness()
    heard = []
    for later, words in (
        (0, "step 1"),
        (1, "step 1"),
        (2, "step 1"),
        (1, "step 2"),
        (1, "step 2"),
        (3600, "step 2"),
    ):
        now += later
        heard.append(still.hear(words))
    assert heard == [0, 1, 3, 0, 1, 1 + LONGEST_GAP]


def test_half_of_the_time_is_worth_one_word_for_each_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    still = Stillness()
    told = []
    for words in ("a", "a", "a", "a", "b", "b", "b"):
        still.hear(words)
        told.append(still.worth_a_word(4.0))
        now += 1.0
    assert told == [False, False, True, False, False, False, True]
