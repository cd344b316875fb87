"""Runs that two studies need: each is executed once, and what one driver has of it the other leaves alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.events import Event, RunFinished
from orchestration.lanes.groups.groups import Groups
from orchestration.lanes.groups.worker import _attempt
from orchestration.lanes.leases import leased
from orchestration.lanes.pooled.commits import Commits
from orchestration.lanes.pooled.desk import Desk
from orchestration.lanes.pooled.pool import Pool
from orchestration.lanes.waits import Elsewhere
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Job, Run
from tests.counting_store import counting_store, requests
from tests.finished_study import make_run
from tests.ledger_runs import checkpointed
from tests.results import finish
from tests.simulated_lanes import SimulatedKind, without_ray

RUNS = [make_run("B1", seed) for seed in range(12)]


@pytest.fixture(params=["local", "remote"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        yield str(tmp_path / "ledger") if request.param == "local" else stack.enter_context(counting_store())


@pytest.fixture
def two(url: str) -> Iterator[tuple[Ledger, Ledger]]:
    """Two drivers on one ledger, each of a study of its own."""
    one, other = Ledger(url), Ledger(url)
    with one.drive("one"), other.drive("other"):
        yield one, other


def scored(run: Run) -> list[Score]:
    return [Score(metric=f"{task}/x", value=1.0) for task in run.tasks]


def before(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, method: str, act: Callable[[], object]) -> None:
    """Another driver acts, once, just before this one calls the method."""
    real, acts = getattr(ledger, method), [act]

    def called(*given: Any) -> Any:
        if acts:
            acts.pop()()
        return real(*given)

    monkeypatch.setattr(ledger, method, called)


@pytest.mark.parametrize("method", ["held_elsewhere", "held", "lease_after"])
def test_a_run_that_another_driver_begins_meanwhile_is_waited_for(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    one, other = two
    run = RUNS[0]
    before(monkeypatch, one, method, lambda: other.lease(run.id))
    found = leased([run], one)
    assert (found.elsewhere, found.attempts) == ({run.id: other.driver}, {})
    assert other.newest(run.id) == 1


@pytest.mark.parametrize("method", ["newest", "held_elsewhere", "held", "lease_after"])
def test_a_run_that_another_driver_ends_meanwhile_is_not_begun(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    one, other = two
    run = RUNS[0]

    def execute() -> None:
        finish(other, run, scored(run))

    before(monkeypatch, one, method, execute)
    found = leased([run], one)
    assert (found.left, found.attempts) == ((), {})


def test_of_a_stack_that_another_driver_has_in_part_nothing_is_leased(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each would wait for what the other has."""
    one, other = two
    last = max(run.id for run in RUNS)
    before(monkeypatch, one, "lease_after", lambda: other.lease(last))
    found = leased(RUNS, one)
    assert (found.elsewhere, found.attempts) == ({last: other.driver}, {})
    assert not any(other.held_elsewhere(run.id) for run in RUNS)


@pytest.mark.timeout(60)
def test_of_two_that_look_at_once_one_gets_a_run(two: tuple[Ledger, Ledger]) -> None:
    at_once = threading.Barrier(2)

    def look(ledger: Ledger, run: Run) -> bool:
        at_once.wait()
        return bool(leased([run], ledger).attempts)

    with ThreadPoolExecutor(2) as threads:
        for run in RUNS:
            assert sorted(threads.map(look, two, (run, run))) == [False, True]


def test_checkpoints_of_who_scores_a_run_on_more_tasks_stay(two: tuple[Ledger, Ledger], tmp_path: Path) -> None:
    """For the other driver the run is finished: it needs fewer tasks."""
    one, other = two
    run = RUNS[0]
    fewer = replace(run, tasks=dict([*run.tasks.items()][:1]))
    finish(one, fewer, scored(fewer))
    folder = checkpointed(other, run, tmp_path / "elsewhere")
    with without_ray():
        pool = Pool(
            SimulatedKind(0.0).start, one, lambda _: None, threading.Event(), lease_seconds=60, stall_seconds=60
        )
        assert pool.run([Job(runs=(fewer,))], lanes=1, tries=1).finished == (run.id,)
    groups = StartedByHand(one, [fewer])
    groups._fill(1)
    assert groups.finished == [run.id]
    kept = tmp_path / "kept"
    if other.remote:
        other.checkpoint(run.id, kept)
    assert ((kept if other.remote else folder) / "step-5" / "weights").exists()
    assert one.held_elsewhere(run.id) == other.driver


# What is done with a run once it was executed


@pytest.mark.timeout(60)
def test_what_follows_a_run_comes_before_its_event_and_in_a_thread_of_the_ledger(url: str) -> None:
    """And only where this driver has executed it: a model is dropped that another study keeps."""
    ledger, told = Ledger(url), list[tuple[str, bool]]()
    found, executed = RUNS[:2]
    finish(ledger, found, scored(found))

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished):
            told.append((event.run.id, True))

    def follow(run: Run) -> None:
        assert ledger.holds(run)
        assert ledger.leases(run.id)  # who waits for it looks at its model afterwards
        told.append((run.id, ledger.remote is (threading.current_thread() is not threading.main_thread())))

    with ledger.drive("one"), without_ray():
        pool = Pool(
            SimulatedKind(0.0).start,
            ledger,
            hear,
            threading.Event(),
            lease_seconds=60,
            stall_seconds=60,
            afterwards=follow,
        )
        pool.run([Job(runs=(found,)), Job(runs=(executed,))], lanes=1, tries=1)
    assert sorted(told) == sorted([(found.id, True), *2 * [(executed.id, True)]])


def test_what_a_dead_lane_had_staged_is_followed_too(tmp_path: Path) -> None:
    ledger, followed = Ledger(tmp_path), list[Run]()
    commits = Commits(ledger, Desk(0), SimpleNamespace(), lambda _: None, followed.append)  # type: ignore[arg-type]
    (run,) = RUNS[:1]
    found = leased([run], ledger)
    finish(ledger, run, scored(run))
    held: Any = SimpleNamespace(
        attempts=found.attempts, lacking=found.lacking, coming=set(), then=[], owed=lambda: (run,)
    )
    for entry in run.entries:
        commits._committed(held, run, entry, 0.0, True)
    assert followed == [run]


# Worker groups


class StartedByHand(Groups):
    """Without Ray: groups that are started are at work for ever."""

    def __init__(self, ledger: Ledger, queue: Sequence[Run] = (), at_work: int = 0) -> None:
        self.started, self.followed, self.told = list[Run](), list[Run](), list[Event]()
        self.ledger, self.on_event, self.afterwards = ledger, self.told.append, self.followed.append
        self.queue, self.not_before, self.elsewhere = deque(queue), {}, Elsewhere(ledger, self.told.append)
        self.groups = dict.fromkeys(map(str, range(at_work)))
        self.finished, self.failed, self.stood_still = [], {}, {}

    def _start(self, run: Run) -> None:
        self.started.append(run)
        self.groups[run.id] = None


def at_work(run: Run, before: int = 0) -> Any:
    """A group as it is when its task has ended."""
    return SimpleNamespace(run=run, before=before, began=0.0, kept=0.0)


def test_what_waits_for_a_group_is_not_looked_up_until_there_is_room() -> None:
    """A hundred runs of hours would be asked for every second."""
    with counting_store() as url:
        groups = StartedByHand(Ledger(url), RUNS, at_work=2)
        with requests() as asked:
            groups._fill(2)
        assert (asked, groups.started) == ([], [])
        groups._fill(3)
        assert groups.started == RUNS[:1]
        assert list(groups.queue) == RUNS[1:]


def test_a_group_is_not_started_where_another_driver_is_at_the_run_nor_asked_for_at_once_again(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    other.lease(RUNS[0].id)
    finish(one, RUNS[1], scored(RUNS[1]))
    groups = StartedByHand(one, RUNS[:3])
    groups._fill(2)
    assert (groups.started, groups.finished, list(groups.queue)) == ([RUNS[2]], [RUNS[1].id], [RUNS[0]])
    monkeypatch.setattr(one, "held", lambda runs: pytest.fail("looked up again at once"))
    groups._fill(2)
    assert list(groups.queue) == [RUNS[0]]


def test_a_run_that_another_driver_ends_while_a_group_is_to_start_is_found(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    run = RUNS[0]
    other.lease(run.id)
    before(monkeypatch, one, "held", lambda: finish(other, run, scored(run)))
    groups = StartedByHand(one, [run])
    groups._fill(1)
    assert (groups.started, groups.finished, list(groups.queue)) == ([], [run.id], [])


@pytest.mark.parametrize("ended", [False, True])
def test_a_group_that_made_way_for_another_driver_is_no_failure(two: tuple[Ledger, Ledger], ended: bool) -> None:
    """Whether that one is at the run still, or was stopped meanwhile."""
    one, other = two
    run = RUNS[0]
    attempt = other.lease(run.id)
    if ended:
        other.give_back(run.id, attempt)
    groups = StartedByHand(one)
    groups._fail(at_work(run), RuntimeError("its worker group ended without a result"))
    assert (list(groups.queue), groups.failed, other.failure(run.id)) == ([run], {}, None)


def test_a_group_that_never_began_or_ended_in_an_attempt_of_its_own_has_failed(url: str) -> None:
    ledger = Ledger(url)
    with ledger.drive("one"):
        groups = StartedByHand(ledger)
        groups._fail(at_work(RUNS[0]), RuntimeError("no room"))
        attempt = ledger.lease(RUNS[1].id)
        groups._fail(at_work(RUNS[1]), RuntimeError("broken"))
    assert [failure.error for failure in groups.failed.values()] == ["no room", "broken"]
    assert groups.failed[RUNS[1].id].attempt == attempt


def test_of_a_run_that_another_driver_finished_a_group_drops_nothing(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    run, own = RUNS[:2]
    finish(other, run, scored(run))
    groups = StartedByHand(one)
    assert groups._commit(at_work(run))
    finish(one, own, scored(own))
    one.lease(own.id)
    assert groups._commit(at_work(own))
    assert (groups.finished, groups.followed) == ([run.id, own.id], [own])


@pytest.mark.parametrize("method", ["newest", "held_elsewhere", "lease_after"])
def test_a_worker_group_leases_no_run_that_another_driver_has_begun(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    one, other = two
    run = RUNS[0]
    assert _attempt(run, one) == 1
    assert _attempt(run, one) == 2  # it was started again
    before(monkeypatch, one, method, lambda: other.lease(run.id))
    assert _attempt(run, one) == 0
    assert one.newest(run.id) == 3


@pytest.mark.parametrize("method", ["newest", "held_elsewhere", "lease_after"])
def test_a_worker_group_leases_no_run_that_another_driver_has_finished(
    two: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """It may have waited for room for hours."""
    one, other = two
    before(monkeypatch, one, method, lambda: finish(other, RUNS[0], scored(RUNS[0])))
    assert _attempt(RUNS[0], one) == 0
