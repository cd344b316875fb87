"""Batches made in a thread: the same, in the same order, never two at a time, and no more than a run asks for."""

from __future__ import annotations

import threading
import time

import pytest

from trainers.engine.ahead import Ahead


class Batches:
    """The function from step to batch, which knows whether it was asked twice at a time."""

    def __init__(self, fails_at: int = -1) -> None:
        self.asked: list[int] = []
        self.threads: set[str] = set()
        self.fails_at, self._lock = fails_at, threading.Lock()

    def __call__(self, step: int) -> str:
        assert self._lock.acquire(blocking=False)
        self.asked.append(step)
        self.threads.add(threading.current_thread().name)
        time.sleep(0.01)
        self._lock.release()
        if step == self.fails_at:
            raise ValueError("no such rows")
        return f"batch {step}"


def test_a_run_that_goes_on_gets_every_batch_once() -> None:
    batches = Batches()
    with Ahead(batches, steps=7) as ahead:
        assert [ahead(step) for step in range(3, 7)] == [f"batch {step}" for step in range(3, 7)]
    assert batches.asked == [3, 4, 5, 6]
    assert len(batches.threads) == 2  # the first in ours


def test_nobody_is_at_work_once_it_is_settled_or_over() -> None:
    batches = Batches()
    with Ahead(batches, steps=9) as ahead:
        ahead(0)
        ahead.settle()
        assert batches.asked == [0, 1]
        assert batches(9) == "batch 9"
        ahead(1)
    assert batches.asked == [0, 1, 9, 2]


def test_what_fails_fails_where_it_is_asked_for() -> None:
    with Ahead(Batches(fails_at=1), steps=3) as ahead:
        assert ahead(0) == "batch 0"
        ahead.settle()
        with pytest.raises(ValueError, match="no such rows"):
            ahead(1)
