"""Pooled lanes on a real Ray: every run ends once in the ledger, whatever dies, hangs or raises on the way.

The run bodies below do what their run's settings say; they meet the test through files in a folder of the run.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.events import (
    Event,
    LaneReady,
    Outcome,
    RunFailed,
    RunFinished,
    RunMoved,
    RunStarted,
    Waiting,
)
from orchestration.lanes.launch import Lanes, launch
from orchestration.lanes.pooled.slots import START_TRIES
from orchestration.lanes.waits import WIND_DOWN_SECONDS
from orchestration.ledger.ledger import Ledger
from orchestration.study.blocks import Resources
from orchestration.study.errors import StudyError
from orchestration.study.run import Body, Job, Result, Run, RunsFailed, Scored
from tests.results import results, run_in
from trainers.engine.world import Progress, World
from trainers.errors import TrainerError

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("ray_of_two")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "meet").mkdir()
    return tmp_path / "meet"


def squares(job: Job, world: World) -> Iterator[Result]:
    """The square of each run's seed."""
    for run in job.runs:
        notes = {"threads": os.environ["OMP_NUM_THREADS"], "pid": os.getpid()}
        seed = run.seed or 0
        yield from results(run, [Score(metric="m/square", value=seed**2)], notes=notes)


def slow_to_train(job: Job, world: World) -> Iterator[Result]:
    """Half a second for each training, nothing for its scores."""
    for run in job.runs:
        time.sleep(0.5)
        yield from results(run, [Score(metric="m", value=1)])


def entries_at_first(run: Run) -> bool:
    """True for the first call with this run, in whatever process."""
    try:
        (Path(run.data["folder"]) / f"entered-{run.seed}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def raising(job: Job, world: World) -> Iterator[Result]:
    """Raises the named error: at the first attempt, or always."""
    from corpora.store.errors import CorpusError

    for run in job.runs:
        if entries_at_first(run) or run.settings["always"]:
            raise {"ValueError": ValueError, "CorpusError": CorpusError}[run.settings["error"]]("no such word")
        yield from results(run, [Score(metric="m", value=1)])


def waiting(job: Job, world: World) -> Iterator[Result]:
    """At the first attempt runs until somebody ends it; later attempts wait until that process is gone, if told to."""
    import time

    import psutil

    (run,) = job.runs
    assert world.scratch is not None
    pid_file = Path(run.data["folder"]) / f"pid-{run.seed}"
    first = entries_at_first(run)
    if first:
        (world.scratch / "reached").write_text("17")
        pid_file.write_text(str(os.getpid()))
    for step in range(100_000):
        world.report(Progress(step=step, steps=100_000, loss=1.0))
        time.sleep(0.01)
        if not first and not (run.settings["outlive"] and psutil.pid_exists(int(pid_file.read_text()))):
            break
        if first and (Path(run.data["folder"]) / "go").exists():
            break
    yield from results(run, [Score(metric="m/reached", value=float((world.scratch / "reached").read_text()))])


def still(job: Job, world: World) -> Iterator[Result]:
    """At the first attempt says the same over and over, or nothing, and comes no further."""
    import time

    (run,) = job.runs
    while entries_at_first(run) or run.settings["always"]:
        for _ in range(3600):
            if run.settings["talks"]:
                world.report(Progress(step=3, steps=60, loss=float("nan")))
            time.sleep(1)
    yield from results(run, [Score(metric="m", value=1.0)])


def stacked(job: Job, world: World) -> Iterator[Result]:
    """Yields run after run; at the first attempt its process dies after three."""
    folder = Path(job.runs[0].data["folder"])
    first = not (folder / "first").exists()
    asked = folder / ("first" if first else "second")
    asked.write_text(" ".join(run.id for run in job.runs))
    for number, run in enumerate(job.runs):
        if first and number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from results(run, [Score(metric="m", value=1.0)])


def short(job: Job, world: World) -> Iterator[Result]:
    """Forgets the scores of the last run."""
    for run in job.runs:
        for result in results(run):
            if run != job.runs[-1] or not isinstance(result, Scored):
                yield result


def go(
    ledger: Ledger,
    jobs: list[Job],
    body: Body,
    on_event: Callable[[Event], None] = lambda event: None,
    *,
    resources: Mapping[str, Any] = MappingProxyType({}),
    lease_seconds: float = 60.0,
    warm: Sequence[str] = (),
) -> tuple[Outcome, list[Event]]:
    """Launch without importing torch in every lane; returns what came out and what was told."""
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        on_event(event)

    outcome = launch(
        jobs,
        ledger=ledger,
        resources=Resources(**{"lanes": 1, "retries": 1, **resources}),
        on_event=hear,
        body=body,
        warm=warm,
        lease_seconds=lease_seconds,
    )
    return outcome, events


def told_of(events: list[Event]) -> list[str]:
    """What was waited for, but for lanes: on a busy machine their start may take long."""
    said = [event.what for event in events if isinstance(event, Waiting)]
    return [what for what in said if not what.startswith("no lane is ready yet; ")]


def alone(runs: list[Run]) -> list[Job]:
    return [Job(runs=(run,)) for run in runs]


def test_every_run_is_done_once(ledger: Ledger, folder: Path) -> None:
    runs = [run_in(folder, seed) for seed in range(12)]
    outcome, events = go(ledger, alone(runs), squares, resources={"lanes": 2})
    assert outcome.failed == {}
    assert not outcome.stopped
    assert sorted(outcome.finished) == sorted(run.id for run in runs)
    assert ledger.ids() == set(outcome.finished)
    assert ledger.entries() == {entry for run in runs for entry in run.entries}
    records = [ledger.record(run) for run in runs]
    assert all(record.cost["seconds"] > 0 and record.cost["gpu_hours"] == 0 for record in records)
    assert [record.metrics["m/square"].value for record in records] == [seed**2 for seed in range(12)]
    assert {record.attempt for record in records} == {1}
    assert len({record.notes["pid"] for record in records}) <= 2
    assert {record.notes["threads"] for record in records} == {"1"}

    assert sum(isinstance(event, LaneReady) for event in events) >= 1
    for run in runs:
        told = [type(event) for event in events if getattr(event, "run", None) == run]
        assert told == [RunStarted, RunFinished]

    again, events = go(ledger, alone(runs), raising)
    assert sorted(again.finished) == sorted(outcome.finished)
    assert not any(isinstance(event, RunStarted) for event in events)


def test_a_run_is_told_with_all_the_time_that_it_took(ledger: Ledger, folder: Path) -> None:
    job = Job(runs=(run_in(folder, 0), run_in(folder, 1)))
    _, events = go(ledger, [job], slow_to_train)
    took = [event.seconds for event in events if isinstance(event, RunFinished)]
    assert [0.5 < seconds < 60 for seconds in took] == [True, True]


def test_lanes_stay_for_jobs_that_follow(ledger: Ledger, folder: Path) -> None:
    """A seed more costs no start of a process; what has nothing to do at the end ends with the study."""
    told: list[Event] = []
    lanes = Lanes(ledger=ledger, resources=Resources(lanes=2), on_event=told.append, body=squares, warm=())
    runs = [run_in(folder, seed) for seed in range(8)]
    with closing(lanes):
        assert lanes.at_once(alone(runs[:1])) == 2
        for batch, more in ((runs[:4], True), (runs[4:5], True), (runs[5:], False)):
            outcome = lanes.run(alone(batch), more=more)
            assert sorted(outcome.finished) == sorted(run.id for run in batch)
    assert len({ledger.record(run).notes["pid"] for run in runs}) <= 2
    assert sum(isinstance(event, LaneReady) for event in told) <= 2


def test_nothing_to_do(ledger: Ledger) -> None:
    assert go(ledger, [], squares) == (Outcome(), [])


@pytest.mark.parametrize(
    ("error", "always", "attempts", "done"),
    [("ValueError", False, 2, True), ("ValueError", True, 3, False), ("CorpusError", False, 1, False)],
)
def test_a_run_that_raises(
    ledger: Ledger, folder: Path, error: str, always: bool, attempts: int, done: bool
) -> None:
    """It is tried again unless that is pointless, in a new process; the other runs do not mind."""
    runs = [run_in(folder, 0, error=error, always=always), run_in(folder, 1, error="ValueError", always=False)]
    outcome, events = go(ledger, alone(runs), raising, resources={"retries": 2})
    assert ledger.holds(runs[1])
    assert ledger.holds(runs[0]) == done
    assert [event.attempt for event in events if isinstance(event, RunStarted) and event.run == runs[0]] == list(
        range(1, attempts + 1)
    )
    told = [event.retrying for event in events if isinstance(event, RunFailed) and event.run == runs[0]]
    assert told == [True] * (attempts - 1) + [False] * (not done)
    assert set(outcome.failed) == set(ledger.failed()) == (set() if done else {runs[0].id})
    if not done:
        failure = outcome.failed[runs[0].id]
        assert failure.error == f"{error}: no such word"
        assert "in raising" in Path(failure.log).read_text()


def test_a_job_that_forgets_a_run(ledger: Ledger, folder: Path) -> None:
    runs = [run_in(folder, seed) for seed in range(3)]
    outcome, _ = go(ledger, [Job(runs=tuple(runs))], short, resources={"retries": 0})
    assert sorted(outcome.finished) == sorted(run.id for run in runs[:2])
    assert "without all results of " + runs[2].id in outcome.failed[runs[2].id].error
    assert ledger.trained(runs[2])  # what it left stays
    assert set(ledger.failed()) == {runs[2].id}
    outcome, _ = go(ledger, [Job(runs=tuple(runs))], squares)
    assert set(outcome.finished) == {run.id for run in runs}
    assert ledger.failed() == {}


def send(folder: Path, number: signal.Signals) -> Callable[[Event], None]:
    """Send a signal to the lane of a run as soon as it says that it is on its way, once."""
    sent: list[Event] = []

    def hear(event: Event) -> None:
        if isinstance(event, RunMoved) and not sent:
            sent.append(event)
            os.kill(int((folder / f"pid-{event.run.seed}").read_text()), number)

    return hear


def test_a_lane_that_is_killed(ledger: Ledger, folder: Path) -> None:
    """Its run starts again elsewhere, from the checkpoint of the attempt that died."""
    run = run_in(folder, 0, outlive=False)
    outcome, events = go(ledger, alone([run]), waiting, send(folder, signal.SIGKILL))
    assert outcome.finished == (run.id,)
    assert ledger.record(run).attempt == 2
    assert ledger.record(run).metrics["m/reached"].value == 17
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert failed.retrying
    assert "died" in failed.message
    assert ledger.failed() == {}
    assert os.listdir(Path(ledger.url) / ".scratch") == []


def test_a_lane_that_is_killed_between_two_launches(ledger: Ledger, folder: Path) -> None:
    """It had nothing to do, and nothing that follows is charged with its end."""
    import ray

    told: list[Event] = []
    lanes = Lanes(
        ledger=ledger, resources=Resources(lanes=1, retries=0), on_event=told.append, body=squares, warm=()
    )
    before, after = run_in(folder, 0), run_in(folder, 1)
    with closing(lanes):
        lanes.run(alone([before]), more=True)
        os.kill(ledger.record(before).notes["pid"], signal.SIGKILL)
        assert lanes._pool is not None
        assert ray.wait([slot.life for slot in lanes._pool.slots], timeout=60)[0]  # Ray has heard of it
        assert lanes.run(alone([after])).finished == (after.id,)
    assert not any(isinstance(event, RunFailed) for event in told)
    assert ledger.record(after).attempt == 1


def test_a_lane_that_is_paused(ledger: Ledger, folder: Path) -> None:
    """Its lease runs out; when it wakes up and finishes, its result is not the one that counts."""
    run = run_in(folder, 0, outlive=True)
    pause = send(folder, signal.SIGSTOP)

    def hear(event: Event) -> None:
        pause(event)
        if isinstance(event, RunStarted) and event.attempt == 2:
            (folder / "go").touch()
            with suppress(ProcessLookupError):  # Ray may have ended it already, where this comes late
                os.kill(int((folder / "pid-0").read_text()), signal.SIGCONT)

    outcome, events = go(ledger, alone([run]), waiting, hear, resources={"lanes": 2}, lease_seconds=2.5)
    assert outcome.finished == (run.id,)
    assert ledger.record(run).attempt == 2
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert failed.message == "its lane was silent for 2.5 s"
    assert not psutil.pid_exists(int((folder / "pid-0").read_text()))
    assert ledger.ids() == {run.id}


@pytest.mark.parametrize(
    ("talks", "always", "place"),
    [(True, False, "after step 3 of 60"), (False, True, "before its first word")],
)
def test_a_lane_that_answers_and_comes_no_further(
    ledger: Ledger, folder: Path, talks: bool, always: bool, place: str
) -> None:
    """It is ended as a silent one is, after a word of warning; the log says which calls it was in."""
    run = run_in(folder, 0, talks=talks, always=always)
    outcome, events = go(ledger, alone([run]), still, resources={"stall_minutes": 3 / 60, "retries": 1 - always})
    assert outcome.finished == (() if always else (run.id,))
    failed = [event for event in events if isinstance(event, RunFailed)]
    message = f"its lane stood still for 3 s (`resources.stall_minutes`: 0.05); last heard: {place}"
    assert [(event.message, event.retrying) for event in failed] == [(message, not always)]
    (warned,) = told_of(events)
    assert f"{run.label}: nothing new for " in warned
    assert f", last {place}; it is ended after 3 s" in warned
    if always:
        assert "in still\n" in Path(outcome.failed[run.id].log).read_text()


def each_for_itself(job: Job, world: World) -> Iterator[Result]:
    """Of a stack the even seeds finish; 1 fails for good, others once."""
    failed: dict[str, Exception] = {}
    for run in job.runs:
        if run.seed == 1:
            failed[run.id] = TrainerError("too far")
        elif run.seed and run.seed % 2 and entries_at_first(run):
            failed[run.id] = RuntimeError(f"of seed {run.seed}")
        else:
            yield from results(run, [Score(metric="m", value=1)])
    if failed:
        raise RunsFailed(failed)


def test_of_a_stack_each_failure_is_recorded_and_tried_again_by_itself(ledger: Ledger, folder: Path) -> None:
    runs = [run_in(folder, seed) for seed in range(6)]
    outcome, events = go(ledger, [Job(runs=tuple(runs))], each_for_itself)
    told = [(event.run.seed, event.message, event.retrying) for event in events if isinstance(event, RunFailed)]
    assert sorted(told, key=str) == [
        (1, "TrainerError: too far", False),
        (3, "RuntimeError: of seed 3", True),
        (5, "RuntimeError: of seed 5", True),
    ]
    assert {run_id: failure.error for run_id, failure in outcome.failed.items()} == {
        runs[1].id: "TrainerError: too far"
    }
    assert sorted(outcome.finished) == sorted(run.id for run in runs if run.seed != 1)


def test_a_stack_that_is_killed_repeats_what_is_lacking(ledger: Ledger, folder: Path) -> None:
    runs = [run_in(folder, seed) for seed in range(6)]
    outcome, _ = go(ledger, [Job(runs=tuple(runs))], stacked)
    assert sorted(outcome.finished) == sorted(run.id for run in runs)
    assert (folder / "first").read_text().split() == [run.id for run in runs]
    assert (folder / "second").read_text().split() == [run.id for run in runs[3:]]
    assert [ledger.record(run).attempt for run in runs] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_is_asked_to_stop(ledger: Ledger, folder: Path, number: signal.Signals) -> None:
    runs = [run_in(folder, seed) for seed in range(30)]
    finished = count(1)

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished) and next(finished) == 5:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    outcome, _ = go(ledger, alone(runs), squares, hear)
    assert signal.getsignal(number) == before
    assert outcome.stopped
    assert 5 <= len(outcome.finished) <= 7
    assert ledger.ids() == set(outcome.finished)
    outcome, _ = go(ledger, alone(runs), squares)
    assert ledger.ids() == {run.id for run in runs}
    assert not outcome.stopped


def test_a_driver_that_is_asked_to_stop_before_a_run_ends(ledger: Ledger, folder: Path) -> None:
    """A lane that has nothing to do by then is handed no other run, nor is one leased for it again and again."""
    runs = [run_in(folder, seed) for seed in range(10)]
    started = count(1)

    def hear(event: Event) -> None:
        if isinstance(event, RunStarted) and next(started) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    outcome, _ = go(ledger, alone(runs), squares, hear)
    assert outcome.stopped
    assert len(outcome.finished) <= 2
    assert ledger.ids() == set(outcome.finished)
    assert all(ledger.newest(run.id) <= 1 for run in runs)


def test_a_driver_that_is_asked_to_stop_twice(ledger: Ledger, folder: Path) -> None:
    """It does not wait for a step that takes long."""
    asked: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, RunMoved) and not asked:
            asked.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        go(ledger, alone([run_in(folder, 0)]), waiting, hear)
    assert 1.0 <= time.monotonic() - asked[0] < WIND_DOWN_SECONDS / 2


def test_a_run_that_another_driver_is_at(ledger: Ledger, folder: Path) -> None:
    """Two studies share a run: the second waits for it rather than doing it again."""
    shared, own = run_in(folder, 0), run_in(folder, 1)
    other = Ledger(ledger.url)

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished) and event.run == own:
            for result in results(shared, [Score(metric="m/square", value=-1)]):
                other.stage(result, attempt)
                assert other.commit(result.entry, attempt)

    with other.drive("another study"):
        attempt = other.lease(shared.id)
        outcome, events = go(ledger, alone([shared, own]), squares, hear)
    assert sorted(outcome.finished) == sorted([shared.id, own.id])
    assert ledger.record(shared).metrics["m/square"].value == -1
    assert [event.run for event in events if isinstance(event, RunStarted)] == [own]
    (waited,) = told_of(events)
    assert (
        waited
        == f"waiting for process {os.getpid()} on {socket.gethostname()}, which is at {shared.label} for another study"
    )


@pytest.mark.parametrize("moment", [RunStarted, LaneReady])
def test_a_failure_of_what_another_driver_took_over(ledger: Ledger, folder: Path, moment: type[Event]) -> None:
    """This driver was away. The other one has done the run when the lane here fails, or when a new lane is there."""
    run = run_in(folder, 0, error="ValueError", always=True)
    other, attempts = Ledger(ledger.url), list[int]()

    def hear(event: Event) -> None:
        if isinstance(event, RunStarted):
            attempts.append(other.lease(run.id))
        if attempts and isinstance(event, moment):
            assert ledger.failure(run.id) is None
            for result in results(run):
                other.stage(result, attempts[0])
                assert other.commit(result.entry, attempts[0])

    with other.drive("another study"):
        outcome, events = go(ledger, alone([run]), raising, hear, resources={"retries": 0})
    assert (outcome.finished, outcome.failed) == ((run.id,), {})
    assert attempts == [ledger.record(run).attempt] == [2]
    assert not any(isinstance(event, RunFailed) for event in events)


def test_lanes_of_a_cluster_that_grows(ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no room when the launch begins; a lane is asked for all the same, and another while runs wait."""
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setattr("orchestration.lanes.launch.runs_that_fit", lambda share: 0)
    runs = [run_in(folder, seed) for seed in range(4)]
    both = [run_in(folder, seed, outlive=False) for seed in (10, 11)]
    ready: list[int] = []

    def go_on(event: Event) -> None:
        if isinstance(event, LaneReady):
            ready.append(event.lane)
            if len(ready) == 2:
                (folder / "go").touch()

    outcome, _ = go(ledger, alone(both), waiting, go_on, resources={"lanes": None})
    assert set(outcome.finished) == {run.id for run in both}
    assert ready == [0, 1]
    outcome, _ = go(ledger, alone(runs), squares, resources={"lanes": None})
    assert set(outcome.finished) == {run.id for run in runs}


@pytest.mark.parametrize("asked_for", [None, 3])
def test_lanes_are_given_back_when_no_run_waits(
    ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch, asked_for: int | None
) -> None:
    """With room for two, a third lane is asked for while a run waits, and not any more once that one has begun.

    So it is with as many lanes as fit, and with a number that the study names.
    """
    from ray._private import state

    before = set(state.actors())

    def lanes(expected: int) -> int:
        """How many there are, once it is as many as expected, or after 10 s."""
        for _ in range(100):
            found = sum(actor["State"] != "DEAD" for name, actor in state.actors().items() if name not in before)
            if found == expected:
                break
            time.sleep(0.1)
        return found

    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setattr("orchestration.lanes.launch.runs_that_fit", lambda share: 0)
    runs = []
    for seed in range(3):
        (folder / str(seed)).mkdir()
        runs.append(run_in(folder / str(seed), seed, outlive=False))
    counted: dict[str, int] = {}

    def hear(event: Event) -> None:
        match event:
            case RunStarted(run=run) if run == runs[1]:
                (folder / "1/go").touch()
            case RunFinished(run=run) if run == runs[1]:
                counted["one waits"] = lanes(3)
            case RunMoved(run=run) if run == runs[2] and not (folder / "0/go").exists():
                counted["none waits"] = lanes(2)
                (folder / "0/go").touch()
            case RunMoved(run=run) if run == runs[2] and ledger.has(runs[0].id):
                counted["one works"] = lanes(1)
                (folder / "2/go").touch()

    outcome, _ = go(ledger, alone(runs), waiting, hear, resources={"lanes": asked_for})
    assert set(outcome.finished) == {run.id for run in runs}
    assert counted == {"one waits": 3, "none waits": 2, "one works": 1}


def test_an_empty_address_is_no_cluster(ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "")
    monkeypatch.setattr("orchestration.lanes.launch.runs_that_fit", lambda share: 0)
    with pytest.raises(StudyError, match="Ray has no such room"):
        go(ledger, alone([run_in(folder, 0)]), squares)


class FirstLaneOnly:
    """A body that reaches one lane and no other; its runs take until the driver has given the other up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        (self.folder / f"start-{os.getpid()}").touch()
        try:
            (self.folder / "first").touch(exist_ok=False)
        except FileExistsError:
            raise RuntimeError("this node is ill") from None

    def starts(self) -> int:
        return len(list(self.folder.glob("start-*")))

    def __call__(self, job: Job, world: World) -> Iterator[Result]:
        while not (self.folder / "given-up").exists():
            time.sleep(0.01)
        yield from results(job.runs[0], [Score(metric="m", value=1)])


def test_a_lane_that_dies_in_every_start_while_another_works(ledger: Ledger, folder: Path) -> None:
    """It is given up with a word, and the other does its work."""
    runs, body = [run_in(folder, seed) for seed in range(2)], FirstLaneOnly(folder)

    def hear(event: Event) -> None:
        if isinstance(event, Waiting):
            (folder / "given-up").touch()

    outcome, events = go(ledger, alone(runs), body, hear, resources={"lanes": 2})
    assert set(outcome.finished) == {run.id for run in runs}
    (said,) = told_of(events)
    assert re.fullmatch(r"lane [01] does not start: RuntimeError: this node is ill", said)
    assert body.starts() == 1 + START_TRIES


def test_memory_is_room_too(ledger: Ledger, folder: Path) -> None:
    with pytest.raises(StudyError, match=r"1 CPU and 100000\.0 GiB, and Ray has no such room"):
        go(ledger, alone([run_in(folder, 0)]), squares, resources={"memory_gib_per_run": 1e5})
    notes = go(ledger, alone([run_in(folder, 1)]), squares, resources={"memory_gib_per_run": 0.5})[0]
    assert len(notes.finished) == 1


def test_lanes_that_cannot_start(ledger: Ledger, folder: Path) -> None:
    jobs = alone([run_in(folder, 0)])
    with pytest.raises(
        StudyError, match=r"no lane could be started: ModuleNotFoundError: .*no_such_module.*\n  accepted"
    ):
        go(ledger, jobs, squares, warm=["no_such_module"])


def test_a_run_that_needs_what_is_not_there(ledger: Ledger, folder: Path) -> None:
    with pytest.raises(
        StudyError, match=r"a run needs 1 CPU and 0.5 GPUs, and Ray has no such room\n  accepted: "
    ):
        go(ledger, alone([run_in(folder, 0)]), squares, resources={"gpus_per_run": 0.5})


def test_a_ray_of_ones_own_has_no_dashboard_no_scaling_and_no_reader_of_logs() -> None:
    """Each is an interpreter more that it would wait for."""
    words = [word for process in psutil.Process().children() for word in process.cmdline()[:4]]
    assert any(word.endswith("/raylet") for word in words)
    assert not [word for word in words if word.endswith(("dashboard.py", "monitor.py"))]


def test_nothing_listens_beyond_this_machine() -> None:
    import ray

    assert ray.is_initialized()
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    assert any("raylet" in process.name() for process in processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a lane of an earlier test that has only now ended
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    assert connection.laddr.ip in ("127.0.0.1", "::1", "::ffff:127.0.0.1"), process.pid


def test_outside_the_main_thread(ledger: Ledger, folder: Path) -> None:
    """No signal handlers there; a search calls from a thread."""
    run, outcomes = run_in(folder, 3), []
    thread = threading.Thread(target=lambda: outcomes.append(go(ledger, alone([run]), squares)[0]))
    thread.start()
    thread.join()
    assert outcomes[0].finished == (run.id,)
