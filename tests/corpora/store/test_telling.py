"""How far long work is, in words."""

from __future__ import annotations

import pytest

from corpora.store import telling
from corpora.store.telling import aloud, heard_by


def test_the_time_left_is_that_of_the_pace_until_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told in minutes, and not where it is less than one."""
    clock, heard = [100.0], list[str]()
    monkeypatch.setattr(telling.time, "monotonic", lambda: clock[0])
    count = telling.counted("encoding texts", 10_000, heard.append)
    for seconds, more in ((60.0, 1_000), (60.0, 5_000), (10.0, 3_500), (1.0, 500)):
        clock[0] += seconds
        count(more)
    assert heard == [
        "encoding texts, 1,000 of 10,000 done, 9 min left",
        "encoding texts, 6,000 of 10,000 done, 1 min left",
        "encoding texts, 9,500 of 10,000 done",
        "encoding texts, 10,000 of 10,000 done",
    ]


def test_what_is_said_aloud_is_heard_by_the_listener_of_the_block_alone() -> None:
    outer, inner = list[str](), list[str]()
    aloud("before")
    with heard_by(outer.append):
        aloud("one")
        with heard_by(inner.append):
            aloud("two")
        aloud("three")
    aloud("after")
    assert (outer, inner) == (["one", "three"], ["two"])
