"""A pool whose lanes do not do as they should, without Ray."""

from __future__ import annotations

import math
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.bodies import Problem
from orchestration.lanes.events import Event, RunFailed, RunFinished, RunLooked, Waiting
from orchestration.lanes.lane import LaneState, Lease
from orchestration.lanes.pooled import pool as pools
from orchestration.lanes.pooled import slots
from orchestration.lanes.pooled.pool import Pool
from orchestration.lanes.pooled.queued import Queued, due
from orchestration.lanes.pooled.slots import START_TRIES
from orchestration.ledger.ledger import Ledger
from orchestration.search.requests import Asking
from orchestration.study.errors import StudyError
from orchestration.study.run import Job
from tests.finished_study import make_run
from tests.results import results
from tests.simulated_lanes import SimulatedKind, _Answer, without_ray
from trainers.engine.world import Progress


def jobs(count: int, first: int = 0) -> list[Job]:
    return [Job(runs=(make_run("B1", seed),)) for seed in range(first, first + count)]


@contextmanager
def pool_of(kind: Any, folder: str | Path, *, growing: bool = False) -> Iterator[tuple[Pool, list[Event]]]:
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


class _Fated(SimulatedKind):
    """Its lanes do with each attempt of a run what `fates` has in turn for its seed; after that they finish it.

    A fate: how many of its results are staged, and how the work ends then. asked: how many entries each attempt owed.
    """

    def __init__(self, fates: dict[int, list[tuple[int, str]]]) -> None:
        super().__init__(0.0)
        self.fates, self.asked = fates, dict[int, list[int]]()

    def start(self, url: str) -> Any:
        actor, ledger = super().start(url), Ledger(url)

        def work(answer: Any, lease: Lease) -> None:
            staged, problems = dict[tuple[str, int], float](), dict[str, str]()
            for run in lease.job.runs:
                seed, attempt = run.seed or 0, lease.attempts[run.id]
                self.asked.setdefault(seed, []).append(len(run.entries))
                count, ends = self.fates[seed].pop(0) if self.fates.get(seed) else (99, "")
                made = results(run, [Score(metric=f"{task}/x", value=1.0) for task in run.tasks])
                for result in islice((one for one in made if not ledger.has(one.entry)), count):
                    ledger.stage(result, attempt)
                    staged[result.entry, attempt] = 1.0
                problems |= {run.id: ends} if ends else {}
            if "dies" in problems.values():
                answer.give(RuntimeError("the actor died"))
                return
            apart = {
                run: Problem(message=ends, traceback="", final=ends == "for good")
                for run, ends in problems.items()
            }
            whole = Problem(message="some failed", traceback="", final=False, apart=apart) if apart else None
            answer.give(LaneState(staged=staged, problem=whole))

        actor.work._act = work
        return actor


@pytest.mark.parametrize("remote", [False, True])
def test_every_run_is_finished_or_failed_once_whatever_its_lanes_do(tmp_path: Path, remote: bool) -> None:
    """Three tries each. What was staged before the end counts, and the next attempt owes only the rest; also where
    the ledger answers while lanes go on."""
    fates = {
        1: [(0, "raises")],
        2: [(2, "raises"), (0, "raises"), (0, "raises")],
        3: [(0, "for good")],
        4: [(2, "dies")],  # with its training and one task in the ledger
        5: [(99, "raises")],  # when all was done
        7: [(0, "raises")],  # of a stack with 6, which ends well
    }
    work = [*jobs(6), Job(runs=(make_run("B1", 6), make_run("B1", 7)))]
    runs = {run.id: run for job in work for run in job.runs}
    kind = _Fated(fates)
    with pool_of(kind, f"memory://{uuid.uuid4().hex}" if remote else tmp_path) as (pool, told):
        outcome = pool.run(work, lanes=2, tries=3)
        ledger = pool.ledger
    assert sorted(runs[one].seed or 0 for one in outcome.finished) == [0, 1, 4, 5, 6, 7]
    assert {runs[one].seed: failure.error for one, failure in outcome.failed.items()} == {
        2: "raises",
        3: "for good",
    }
    assert {one for one, run in runs.items() if ledger.holds(run)} == {*outcome.finished}
    assert {one: failure.final for one, failure in ledger.failed().items()} == {
        one: runs[one].seed == 3 for one in outcome.failed
    }
    entries = 1 + len(make_run("B1", 0).tasks)
    once, twice, less = [entries], [entries, entries], [entries, entries - 1]
    assert kind.asked == {0: once, 1: twice, 2: [*less, entries - 1], 3: once, 4: less, 5: once, 6: once, 7: twice}
    retried = [(event.run.seed, event.retrying) for event in told if isinstance(event, RunFailed)]
    assert sorted(retried) == [(1, True), (2, False), (2, True), (2, True), (3, False), (4, True), (7, True)]
    assert sorted(event.run.seed or 0 for event in told if isinstance(event, RunFinished)) == [0, 1, 4, 5, 6, 7]


class _GivesUp(SimulatedKind):
    """Its lane looks at its first attempt at a run, is told to give it up, and does so, or is at its end already."""

    def __init__(self, *, obeys: bool) -> None:
        super().__init__(0.0)
        self.obeys = obeys
        self.told_to_drop = threading.Event()
        self.asked_again = threading.Event()
        self.attempts: list[int] = []

    def start(self, url: str) -> Any:
        actor, look = super().start(url), Progress(step=1, steps=2, loss=1.0)
        finish = actor.work._act

        def first(answer: Any, lease: Lease) -> None:
            assert self.asked_again.wait(10.0)
            if self.obeys:
                answer.give(LaneState(dropped=True))
            else:
                finish(answer, lease)

        def work(answer: Any, lease: Lease) -> None:
            (run,), (attempt,) = lease.job.runs, lease.attempts.values()
            self.attempts.append(attempt)
            if attempt > 1:
                finish(answer, lease)
                return
            actor._state = LaneState(moving=(run.id, look), looks=(look,))
            threading.Thread(target=first, args=(answer, lease), daemon=True).start()

        def drop(answer: Any, *_: Any) -> None:
            self.told_to_drop.set()

        actor.work._act, actor.drop._act = work, drop
        return actor


@pytest.mark.parametrize("obeys", [True, False])
def test_a_run_that_is_asked_for_again_while_its_lane_gives_it_up_ends_once(
    obeys: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two points of a search are one run: the first is stopped by a look, then the second asks.

    The lane executes the run anew where it did give it up, and its result answers the second point where it did not.
    """
    monkeypatch.setattr(pools, "POLL_SECONDS", 0.05)
    kind, (run,) = _GivesUp(obeys=obeys), jobs(1)[0].runs
    bells, told = list[_Answer](), list[tuple[int, Any]]()

    def ring() -> _Answer:
        """The driver listens for requests: the second comes once the lane is told, none once it is answered."""
        bells.append(bell := _Answer())
        if len(bells) == 1:
            bell.give([(1, 0, 0)])
        elif len(bells) == 2:
            threading.Thread(target=lambda: kind.told_to_drop.wait(10.0) and bell.give([(2, 1, 0)])).start()
        else:
            kind.asked_again.set()
        return bell

    def answer(ticket: int, report: Any) -> None:
        told.append((ticket, report))
        if ticket == 2:
            bells[-1].give(None)

    def handle(event: Event) -> None:
        if isinstance(event, RunLooked):
            asking.looked(event.run, lambda number, place: {"stopped": 1.0} if number == 0 else None)
        elif isinstance(event, RunFinished):
            asking.done(event.run, lambda number, place: {"score": 1.0})

    exchange = SimpleNamespace(asked=SimpleNamespace(remote=ring), answer=SimpleNamespace(remote=answer))
    asking = Asking(exchange, lambda number, place: run)
    stop, ledger = threading.Event(), Ledger(tmp_path)
    with ledger.drive("study"), without_ray():
        pool = Pool(kind.start, ledger, handle, stop, lease_seconds=60, stall_seconds=60)
        late = threading.Timer(10.0, stop.set)
        late.start()
        outcome = pool.run((), lanes=1, tries=1, source=asking)
        late.cancel()
    assert (outcome.finished, outcome.stopped) == ((run.id,), False)
    assert told == [(1, {"stopped": 1.0}), (2, {"score": 1.0})]
    assert kind.attempts == ([1, 2] if obeys else [1])


def test_a_job_that_is_not_due_lets_others_pass() -> None:
    later, now = (
        Queued(job.runs, 1, not_before) for job, not_before in zip(jobs(2), (math.inf, 0.0), strict=True)
    )
    queue = deque([later, now])
    assert (due(queue), due(queue), [*queue]) == (now, None, [later])
