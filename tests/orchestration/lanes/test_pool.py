"""A pool whose lanes do not do as they should, without Ray."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestration.lanes.events import Event, RunFailed, Waiting
from orchestration.lanes.pooled import pool as pools
from orchestration.lanes.pooled import slots
from orchestration.lanes.pooled.pool import Pool
from orchestration.lanes.pooled.slots import START_TRIES
from orchestration.ledger.ledger import Ledger
from orchestration.study.errors import StudyError
from orchestration.study.run import Job
from tests.finished_study import make_run
from tests.simulated_lanes import SimulatedKind, without_ray


def jobs(count: int, first: int = 0) -> list[Job]:
    return [Job(runs=(make_run("B1", seed),)) for seed in range(first, first + count)]


@contextmanager
def pool_of(kind: Any, folder: Path, *, growing: bool = False) -> Iterator[tuple[Pool, list[Event]]]:
    ledger, told, stop = Ledger(folder), list[Event](), threading.Event()
    with ledger.drive("study"), without_ray():
        yield (
            Pool(kind.start, ledger, told.append, stop, lease_seconds=60, stall_seconds=60, growing=growing),
            told,
        )


class _Mortal(SimulatedKind):
    """Its lanes can be ended. work on a dead one breaks off."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.lives: list[Any] = []
        self.actors: list[Any] = []

    def start(self, url: str) -> Any:
        actor = super().start(url)
        actor.live._act = self.lives.append
        self.actors.append(actor)
        return actor

    def end(self, number: int) -> None:
        error = RuntimeError("the actor died")
        self.actors[number].work._act = lambda answer, *_: answer.give(error)
        self.lives[number].give(error)


def test_a_lane_that_died_with_nothing_to_do_costs_no_run_an_attempt(tmp_path: Path) -> None:
    kind = _Mortal()
    with pool_of(kind, tmp_path) as (pool, told):
        assert len(pool.run(jobs(4), lanes=2, tries=1, more=True).finished) == 4
        kind.end(0)
        kind.end(1)
        assert len(pool.run(jobs(4, first=4), lanes=2, tries=1).finished) == 4
    assert not [event for event in told if isinstance(event, RunFailed)]
    assert len(kind.actors) == 4


class _Ill(SimulatedKind):
    """Of its lanes the first becomes ready, or hangs; all others die in their start."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__(0.05)
        self.hangs = hangs

    def start(self, url: str) -> Any:
        actor = super().start(url)
        if len(self.spans) > 1:
            actor.pid._act = lambda answer: answer.give(RuntimeError("of Ray\nNo module named 'x'"))
        elif self.hangs:
            actor.pid._act = lambda answer: None
        return actor


SAID = "lane 1 does not start: No module named 'x'"


@pytest.mark.parametrize(("growing", "lanes"), [(False, 2), (True, 1)])
def test_a_lane_that_dies_in_every_start_is_given_up(tmp_path: Path, growing: bool, lanes: int) -> None:
    """Also where the pool itself asks for one more while runs wait: another one would die as well."""
    kind = _Ill(hangs=False)
    with pool_of(kind, tmp_path, growing=growing) as (pool, told):
        for first in (0, 6):
            outcome = pool.run(jobs(6, first), lanes=lanes, tries=1, more=not first)
            assert len(outcome.finished) == 6
    assert [event.what for event in told if isinstance(event, Waiting)] == [SAID]
    assert len(kind.spans) == 1 + START_TRIES


def test_a_study_ends_whose_lanes_hang_or_die_in_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "START_SECONDS", 0.5)
    monkeypatch.setattr(pools, "POLL_SECONDS", 0.05)
    kind = _Ill(hangs=True)
    with pool_of(kind, tmp_path) as (pool, told), pytest.raises(StudyError, match="none was ready after 0 s"):
        pool.run(jobs(2), lanes=2, tries=1)
    assert [event.what for event in told if isinstance(event, Waiting)] == [SAID]


def test_lanes_that_hang_in_their_start_are_told_of_before_the_study_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "SAID_SECONDS", 0.1)
    monkeypatch.setattr(slots, "START_SECONDS", 0.5)
    monkeypatch.setattr(pools, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(pools, "room_words", lambda: "Ray has 2 CPUs")
    ended = r"none was ready after 0 s\n  accepted: the same command once more"
    with pool_of(_Ill(hangs=True), tmp_path) as (pool, told), pytest.raises(StudyError, match=ended):
        pool.run(jobs(2), lanes=1, tries=1)
    assert [event.what for event in told if isinstance(event, Waiting)] == ["no lane is ready yet; Ray has 2 CPUs"]


class _Elsewhere(SimulatedKind):
    """Its lanes stage on a disk of their own."""

    def __init__(self, url: str) -> None:
        super().__init__(0.0)
        self.url = url

    def start(self, url: str) -> Any:
        return super().start(self.url)


def test_a_ledger_that_lanes_do_not_share_is_told_of(tmp_path: Path) -> None:
    said = (
        rf"ledger {tmp_path / 'here'}: a lane has staged a result of B1 on tiny, seed 0 in it, and from here there is "
        r"none to be seen\n  accepted: a ledger that all machines share; `semray doctor` says whether they do"
    )
    elsewhere = _Elsewhere(str(tmp_path / "there"))
    with pool_of(elsewhere, tmp_path / "here") as (pool, _), pytest.raises(StudyError, match=said):
        pool.run(jobs(1), lanes=1, tries=2)
