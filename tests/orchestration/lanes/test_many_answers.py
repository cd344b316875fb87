"""Many lanes that answer at a time: all that is there is taken in one look, and a lane that died is replaced once."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from orchestration.lanes.events import Event, RunFailed
from orchestration.lanes.pooled import pool as pools
from orchestration.lanes.pooled.pool import Pool
from orchestration.ledger.ledger import Ledger
from orchestration.study.run import Job
from tests.finished_study import make_run
from tests.simulated_lanes import SimulatedKind, without_ray

JOBS = [Job(runs=(make_run("B1", seed),)) for seed in range(24)]


class _DiesAtWork(SimulatedKind):
    """The first lane's process dies at its first job, whose answer and that of a look at it break together."""

    def start(self, url: str) -> Any:
        actor = super().start(url)
        if len(self.spans) == 1:
            waiting: list[Any] = []
            actor.work._act = lambda answer, lease: waiting.append(answer)

            def die(answer: Any) -> None:
                for one in (answer, *waiting):
                    one.give(RuntimeError("the actor died"))

            actor.state._act = die
        return actor


def drive(folder: Path, kind: SimulatedKind, lanes: int) -> tuple[Any, list[Event]]:
    ledger, told = Ledger(folder), list[Event]()
    with ledger.drive("study"), without_ray():
        pool = Pool(kind.start, ledger, told.append, threading.Event(), lease_seconds=60, stall_seconds=60)
        waits = [0]
        wait = sys.modules["ray"].wait

        def counted(*given: Any, **named: Any) -> Any:
            waits[0] += 1
            return wait(*given, **named)

        sys.modules["ray"].wait = counted  # type: ignore[attr-defined]
        outcome = pool.run(JOBS, lanes=lanes, tries=2)
    assert len(outcome.finished) == len(JOBS)
    return waits[0], told


def test_what_is_there_is_taken_in_one_look(tmp_path: Path) -> None:
    """24 lanes of one job each: ready at once, and at work for as long; not two looks for each answer."""
    waits, _ = drive(tmp_path, SimulatedKind(0.5), lanes=24)
    assert waits < 2 * len(JOBS)


def test_a_lane_whose_answers_break_together_is_replaced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "POLL_SECONDS", 0.0)
    kind = _DiesAtWork(0.0)
    _, told = drive(tmp_path, kind, lanes=2)
    assert [event.retrying for event in told if isinstance(event, RunFailed)] == [True]
    assert len(kind.spans) == 3
