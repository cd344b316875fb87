"""Lanes for a pool without Ray: threads of this process that stage made-up results some seconds after they began."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.lane import LaneState, Lease
from orchestration.ledger.ledger import Ledger
from tests.results import results

_news = threading.Condition()


class _Answer:
    """What a lane was asked for, and whether it has come."""

    def __init__(self) -> None:
        self.value: Any = None
        self.there = False

    def give(self, value: Any) -> None:
        with _news:
            self.value, self.there = value, True
            _news.notify_all()


class SimulatedKind:
    """`start` is for a pool. spans: when each run was worked on, by lane; staging takes its own time besides."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.spans: list[list[tuple[float, float]]] = []
        self.threads = WeakSet[threading.Thread]()  # not by their numbers, which are given again

    def start(self, url: str) -> Any:
        self.spans.append([])
        return _Actor(self, url, self.spans[-1])


class _Actor:
    def __init__(self, kind: SimulatedKind, url: str, spans: list[tuple[float, float]]) -> None:
        self._kind, self._ledger, self._spans = kind, Ledger(url), spans
        self._state = LaneState()
        self.pid = _Method(lambda answer: answer.give(1))
        self.live = _Method(lambda answer: None)
        self.state = _Method(lambda answer: answer.give(self._state))
        self.stop = self.drop = _Method(lambda answer, *_: answer.give(None))
        self.work = _Method(lambda *given: threading.Thread(target=self._work, args=given, daemon=True).start())

    def _work(self, answer: _Answer, lease: Lease) -> None:
        began = time.monotonic()
        self._kind.threads.add(threading.current_thread())
        self._state = LaneState()
        time.sleep(self._kind.seconds)
        for run in lease.job.runs:
            for result in results(run, [Score(metric=f"{task}/x", value=1.0) for task in run.tasks]):
                self._ledger.stage(result, lease.attempts[run.id])
                staged = {**self._state.staged, (result.entry, lease.attempts[run.id]): 0.0}
                self._state = LaneState(staged=staged)
        self._spans.append((began, time.monotonic()))
        answer.give(self._state)


class _Method:
    def __init__(self, act: Any) -> None:
        self._act = act

    def options(self, **_: Any) -> _Method:
        return self

    def remote(self, *given: Any) -> _Answer:
        answer = _Answer()
        self._act(answer, *given)
        return answer


def _wait(answers: Sequence[_Answer], num_returns: int = 1, timeout: float | None = None) -> Any:
    def enough() -> bool:
        return sum(answer.there for answer in answers) >= num_returns

    with _news:
        _news.wait_for(enough, timeout)
    done = [answer for answer in answers if answer.there][:num_returns]
    taken = set(done)
    return done, [answer for answer in answers if answer not in taken]


def _get(answer: _Answer, timeout: float | None = None) -> Any:
    if isinstance(answer.value, Exception):
        raise answer.value
    return answer.value


@contextmanager
def without_ray() -> Iterator[None]:
    """Where a pool asks Ray, it asks these lanes."""
    ray = SimpleNamespace(
        wait=_wait,
        get=_get,
        kill=lambda actor: None,
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", ray)
        yield
