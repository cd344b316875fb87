"""Worker groups on a real Ray Train: two gloo workers, checkpoints, a worker killed or stopped in mid run."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from evaluators.metrics.scores import Score
from orchestration.lanes.events import (
    Event,
    Outcome,
    Preparing,
    RunFailed,
    RunFinished,
    RunMoved,
    RunStarted,
    Waiting,
)
from orchestration.lanes.launch import Lanes, launch
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.storage import open_storage
from orchestration.study.blocks import Resources
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Result, Run
from tests.results import finish, results, run_in
from trainers.engine.world import Progress, World

pytestmark = [pytest.mark.timeout(280), pytest.mark.usefixtures("ray_of_two")]
STEPS = 12


def make_run(folder: Path, arm: str = "A", *, seed: int | None = 0, **settings: object) -> Run:
    folder.mkdir(exist_ok=True)
    return replace(run_in(folder, seed, arm, **settings), world_size=1 if seed is None else 2)


class Rows:
    """A batch: inputs (N, 4) and their sums (N, 1), drawn for one step."""

    def __init__(self, step: int) -> None:
        import torch

        self.inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))

    def __len__(self) -> int:
        return len(self.inputs)


def fitting(job: Job, world: World) -> Iterator[Result]:
    """Fits a small network with the real engine, each worker on its share of every batch.

    A run that is to be disturbed stays at step 6 of its first start, until it hears that it is to stop.
    """
    import time

    import torch
    from torch import nn

    from trainers.engine.loop import Recipe, fit

    (run,) = job.runs
    folder = Path(run.data["folder"])
    (folder / f"pid-{run.arm}-{world.rank}").write_text(str(os.getpid()))
    asked = folder / f"asked-{run.arm}-{world.rank}"
    first = not asked.exists()

    def batches(step: int) -> Rows:
        with asked.open("a") as file:
            file.write(f"{step}\n")
        while step == 6 and first and run.arm == "disturbed" and not world.stopping():
            time.sleep(0.1)
            world.report(Progress(step=step, steps=STEPS, loss=0.0))
        return Rows(step)

    def loss(model: Callable, rows: Rows) -> dict[str, torch.Tensor]:
        inputs = rows.inputs[world.rank :: world.size]
        return {"square": (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()}

    with torch.random.fork_rng():
        torch.manual_seed(run.seed or 0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 1))
    groups = [{"params": list(model.parameters()), "lr": 0.01}]
    curve = fit(model, loss, batches, groups=groups, recipe=Recipe(steps=STEPS), seed=run.seed or 0, world=world)
    norm = sum(float(weight.detach().square().sum()) for weight in model.parameters())
    notes = {"size": world.size, "patience": _patience().total_seconds()}
    yield from results(run, [Score(metric="m/norm", value=norm)], curve=curve, notes=notes)


def _patience() -> timedelta:
    """How long a worker waits for the others before it gives up."""
    import torch

    default: Any = torch.distributed.group.WORLD
    return default._get_backend(torch.device("cpu")).options._timeout


def failing(job: Job, world: World) -> Iterator[Result]:
    """Rank 1 raises while rank 0 waits for it."""
    import torch

    from trainers.engine.loop import Diverged

    (run,) = job.runs
    with (Path(run.data["folder"]) / f"starts-{world.rank}").open("a") as file:
        file.write("0\n")
    if world.rank == 1:
        raise (
            Diverged(7, {"loss": float("nan")})
            if run.settings["error"] == "Diverged"
            else ValueError("no such word")
        )
    torch.distributed.barrier()
    yield from results(run)


def go(
    ledger: Ledger,
    runs: list[Run],
    body: Callable,
    on_event: Callable[[Event], None] = lambda event: None,
    **options: object,
) -> tuple[Outcome, list[Event]]:
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        on_event(event)

    resources = Resources(**{"workers_per_run": 2, "retries": 1, "checkpoint_every": 4, **options})
    jobs = [Job(runs=(run,)) for run in runs]
    return launch(jobs, ledger=ledger, resources=resources, on_event=hear, body=body), events


def placed(job: Job, world: World) -> Iterator[Result]:
    """The size of each run's world, whether its workers meet at checkpoints, and where they are; then they wait to be
    let go."""
    import time

    for run in job.runs:
        while world.save is not None and not (Path(run.data["folder"]) / "go").exists():
            world.report(Progress(step=1, steps=2, loss=0.0))
            time.sleep(0.1)
        yield from results(run, notes={"size": world.size, "group": world.save is not None, "at": os.getcwd()})


def lines(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


@dataclass(frozen=True)
class Figures:
    """What a fitted run leaves behind. flops: of all its attempts, steps that were taken again counted once."""

    flops: float
    norm: float
    losses: list[float]


def figures(ledger: Ledger, run: Run) -> Figures:
    notes = ledger.record(run).notes
    # rank 0 may score for as long as `stall_minutes` allows, while the others wait for what it lets them encode
    assert (notes["size"], notes["patience"]) == (2, 60 * 10_080)
    flops = ledger.record(run).cost["flops"]
    assert flops > 0
    losses = [row["value"] for row in ledger.curve(run).to_pylist() if row["name"] == "loss"]
    return Figures(flops, ledger.record(run).metrics["m/norm"].value, losses)


def stuck(job: Job, world: World) -> Iterator[Result]:
    """At its first start one worker says the same for ever, and the other waits for it."""
    import time

    folder = Path(job.runs[0].data["folder"])
    (folder / f"pid-{world.rank}").write_text(str(os.getpid()))
    first = folder / f"first-{world.rank}"
    if not first.exists():
        first.touch()
        for _ in range(3600):
            if world.rank == 0:
                world.report(Progress(step=1, steps=2, loss=0.0))
            time.sleep(1)
    yield from results(job.runs[0])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[Event], None]:
    """From the moment a group trains until it is ended, six seconds are too long; before and after it imports."""
    ended: list[Event] = []

    def hear(event: Event) -> None:
        if isinstance(event, Waiting) and event.what.endswith("; its workers are ended"):
            ended.append(event)
            monkeypatch.setattr(Resources, "stall_seconds", 1800.0)
        elif isinstance(event, RunMoved) and not ended:
            monkeypatch.setattr(Resources, "stall_seconds", 6.0)

    return hear


STOOD_STILL = (
    r"its worker group stood still for 6 s \(`resources.stall_minutes`: 0.1\); last heard: "
    r"rank 0 after step 1 of 2 \(.* s ago\), rank 1 at its start \(.* s ago\)"
)


def test_a_group_that_stands_still_is_ended_and_started_again(
    ledger: Ledger, tmp_path: Path, impatient: Callable[[Event], None]
) -> None:
    run = make_run(tmp_path / "meet")
    outcome, events = go(ledger, [run], stuck, impatient)
    assert outcome.finished == (run.id,)
    assert ledger.record(run).attempt == 2
    warned, ended = [event.what for event in events if isinstance(event, Waiting) and "begun" not in event.what]
    assert re.fullmatch(f"{run.label}: nothing new for . s, last rank 0 .*; it is ended after 6 s", warned)
    assert re.fullmatch(f"{run.label}: {STOOD_STILL}; its workers are ended", ended)


ASKED = r"2 workers with 1 CPU each were asked for; Ray has 2 CPUs and .* GiB, of which {} and .* GiB are free"


@pytest.mark.long
def test_a_group_that_cannot_even_be_ended(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: Callable[[Event], None]
) -> None:
    """Its machines have stopped: no worker hears that it is to end, and none is started in its place."""
    run, folder = make_run(tmp_path / "meet"), tmp_path / "meet"

    def signal_both(number: signal.Signals) -> None:
        for rank in (0, 1):
            with suppress(ProcessLookupError):
                os.kill(int((folder / f"pid-{rank}").read_text()), number)

    def hear(event: Event) -> None:
        if isinstance(event, Waiting) and event.what.endswith("; its workers are ended"):
            signal_both(signal.SIGSTOP)
            monkeypatch.setattr("orchestration.lanes.groups.groups.START_SECONDS", 4.0)
            monkeypatch.setattr(Resources, "stall_seconds", 6.0)
        else:
            impatient(event)

    try:
        outcome, _ = go(ledger, [run], stuck, hear)
    finally:
        signal_both(signal.SIGKILL)
    (failure,) = outcome.failed.values()
    assert re.fullmatch(rf"{STOOD_STILL}; it was not started again: {ASKED.format('0 CPUs')}", failure.error)


def test_a_group_without_room(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else has one of the two cores, and keeps it."""
    import ray

    monkeypatch.setattr("orchestration.lanes.groups.groups.START_SECONDS", 5.0)
    monkeypatch.setattr("orchestration.lanes.groups.groups.SAID_SECONDS", 1.0)
    somebody, told = ray.remote(num_cpus=1)(Somebody).remote(), list[Event]()
    asked, run = ASKED.format("1 CPU"), make_run(tmp_path / "meet")
    ray.get(somebody.is_there.remote())
    try:
        with pytest.raises(StudyError, match=rf"no worker has begun in 5 s; {asked}\n  accepted: "):
            go(ledger, [run], fitting, told.append)
    finally:
        ray.kill(somebody)
    (waited,) = [event.what for event in told if isinstance(event, Waiting)]
    assert re.fullmatch(f"{run.label}: no worker has begun yet; {asked}", waited)


class Somebody:
    """Another program on the same cluster."""

    def is_there(self) -> bool:
        return True


def test_a_group_that_waited_beside_one_at_work(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for one. Hours later the other gets it, and its time to begin, from then on."""
    runs, hours = [make_run(tmp_path / "meet", seed=seed) for seed in range(2)], [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * hours[-1])
    monkeypatch.setattr("orchestration.lanes.groups.groups.time", clock)

    def hear(event: Event) -> None:
        if isinstance(event, RunMoved):
            hours.append(hours[-1] + 1)
            if len(hours) == 4:
                (tmp_path / "meet" / "go").touch()

    outcome, _ = go(ledger, runs, placed, hear, lanes=2)
    assert set(outcome.finished) == {run.id for run in runs}
    assert len(hours) >= 4


@pytest.mark.long
def test_a_run_that_another_driver_begins_while_its_group_starts(ledger: Ledger, tmp_path: Path) -> None:
    """The group ends without having trained, and the run is waited for."""
    run, other = make_run(tmp_path / "meet"), Ledger(ledger.url)
    (tmp_path / "meet" / "go").touch()

    def hear(event: Event) -> None:
        if isinstance(event, RunStarted):
            other.lease(run.id)
        elif isinstance(event, Waiting) and "waiting for process" in event.what:
            finish(other, run, [Score(metric="m/norm", value=7.0)])

    with other.drive("another"):
        outcome, events = go(ledger, [run], placed, hear)
    assert (outcome.finished, outcome.failed) == ((run.id,), {})
    assert (ledger.record(run).attempt, ledger.record(run).metrics["m/norm"].value) == (2, 7.0)
    assert len([event for event in events if isinstance(event, RunStarted)]) == 1


def test_groups_of_a_cluster_that_grows(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no room when the launch begins; once a group is at work another is asked for while runs wait."""
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setattr("orchestration.lanes.launch.runs_that_fit", lambda share: 0)
    runs = [replace(make_run(tmp_path / "meet", seed=seed), world_size=1) for seed in range(3)]
    asked_for, at_once, moved = list[Event](), list[int](), count()

    def hear(event: Event) -> None:
        if isinstance(event, RunStarted):
            asked_for.append(event)
        if isinstance(event, RunMoved) and next(moved) == 3:
            at_once.append(len(asked_for))
            (tmp_path / "meet" / "go").touch()

    outcome, _ = go(ledger, runs, placed, hear, workers_per_run=1, launcher="train")
    assert set(outcome.finished) == {run.id for run in runs}
    assert at_once == [2]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """What comes of the run when nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ledger, run = Ledger(folder / "ledger"), make_run(folder / "meet", "undisturbed")
    with ledger.drive("study"):
        outcome, events = go(ledger, [run], fitting)
    assert outcome.finished == (run.id,)
    assert [type(event) for event in events if not isinstance(event, Preparing | Waiting | RunMoved)] == [
        RunStarted,
        RunFinished,
    ]
    for rank in (0, 1):
        assert lines(folder / f"meet/asked-undisturbed-{rank}") == [*range(STEPS)]
    assert ledger.record(run).attempt == 1
    found = figures(ledger, run)
    assert len(found.losses) == STEPS
    assert found.losses[-1] < found.losses[0]
    return found


def at_step_6(act: Callable[[], None]) -> Callable[[Event], None]:
    """Do something as soon as the run that is to be disturbed says that it is there, once."""
    done: list[Event] = []

    def hear(event: Event) -> None:
        if isinstance(event, RunMoved) and event.progress.step == 6 and not done:
            done.append(event)
            act()

    return hear


def test_a_worker_that_is_killed(ledger: Ledger, tmp_path: Path, undisturbed: Figures) -> None:
    """The group goes on from its last checkpoint and ends exactly where its undisturbed twin ends."""
    folder = tmp_path / "meet"
    run = make_run(folder, "disturbed")
    kill = at_step_6(lambda: os.kill(int((folder / "pid-disturbed-1").read_text()), signal.SIGKILL))
    outcome, events = go(ledger, [run], fitting, kill)
    assert outcome.finished == (run.id,)
    assert [type(event) for event in events if not isinstance(event, Preparing | Waiting | RunMoved)] == [
        RunStarted,
        RunFinished,
    ]
    for rank in (0, 1):
        assert lines(folder / f"asked-disturbed-{rank}") == [*range(7), *range(4, STEPS)]
    assert ledger.record(run).attempt == 2
    assert figures(ledger, run) == undisturbed
    assert os.listdir(Path(ledger.url) / ".scratch") == []
    assert os.listdir(Path(ledger.url) / ".train") == []


@pytest.mark.long
@pytest.mark.parametrize(("process", "comes_again"), [("ray::TrainContr", False), ("ray::fit", True)])
def test_who_waits_for_a_group_is_killed(ledger: Ledger, tmp_path: Path, process: str, comes_again: bool) -> None:
    """With a process of Ray Train's own the group is gone too, and its room is free for the next one."""
    run = make_run(tmp_path / "meet", "disturbed")

    def kill() -> None:
        processes = psutil.Process().children(recursive=True)
        found = [one for one in processes if one.name().startswith(process)]
        max(found, key=psutil.Process.create_time).kill()  # those of an earlier group live on for some seconds

    outcome, _ = go(ledger, [run], fitting, at_step_6(kill))
    if not comes_again:
        assert (outcome.finished, [*outcome.failed]) == ((), [run.id])
        outcome, _ = go(ledger, [run], fitting)
    assert (outcome.finished, ledger.record(run).attempt) == ((run.id,), 2)


def test_a_driver_that_is_asked_to_stop(ledger: Ledger, tmp_path: Path, undisturbed: Figures) -> None:
    """The running step ends on all workers and is saved; the next launch goes on from that very step.

    The driver may be on another machine then, and find only what the group has reported.
    """
    folder = tmp_path / "meet"
    run = make_run(folder, "disturbed")
    outcome, events = go(ledger, [run], fitting, at_step_6(lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert outcome == Outcome(stopped=True)
    assert not any(isinstance(event, RunFailed) for event in events)
    assert ledger.failed() == {}
    assert [path.name for path in Path(ledger.url).glob(".scratch/*/step-*")] == ["step-7"]
    shutil.rmtree(Path(ledger.url) / ".scratch")

    outcome, _ = go(ledger, [run], fitting)
    assert outcome.finished == (run.id,)
    for rank in (0, 1):
        assert lines(folder / f"asked-disturbed-{rank}") == [*range(STEPS)]
    assert ledger.record(run).attempt == 2
    assert figures(ledger, run) == undisturbed


def test_a_driver_whose_study_was_taken_over(ledger: Ledger, tmp_path: Path) -> None:
    """It starts no group any more."""
    lock = {"study": "study", "host": "elsewhere", "pid": 7, "started": 1.0, "beat": time.time()}
    open_storage(ledger.url).create(".drivers/study/2", json.dumps(lock).encode())
    begun: list[Event] = []
    with pytest.raises(StudyError, match="study study was taken over by process 7 on elsewhere"):
        go(ledger, [make_run(tmp_path / "meet")], fitting, begun.append)
    assert not any(isinstance(event, RunStarted) for event in begun)


@pytest.mark.parametrize(
    ("error", "attempts"), [("Diverged", 1), pytest.param("ValueError", 2, marks=pytest.mark.long)]
)
def test_a_worker_that_raises(ledger: Ledger, tmp_path: Path, error: str, attempts: int) -> None:
    """What is certain to come back is not tried again."""
    run = make_run(tmp_path / "meet", error=error)
    outcome, events = go(ledger, [run], failing)
    assert outcome.finished == ()
    failure = outcome.failed[run.id]
    assert error in failure.error
    assert len(lines(tmp_path / "meet" / "starts-1")) == attempts
    assert "failing" in Path(failure.log).read_text()
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert not failed.retrying


@dataclass(frozen=True)
class BothKinds:
    """A launch of an untrained arm's run, which has one worker, and of a trained one.

    notes: of both. started_at: its folder. heard_at: the addresses at which workers of the group listen. moved: how
    often it was told how far the trained one is.
    """

    outcome: Outcome
    runs: tuple[Run, Run]
    notes: tuple[object, object]
    started_at: str
    heard_at: frozenset[str]
    moved: int


@pytest.fixture(scope="module")
def both_kinds(tmp_path_factory: pytest.TempPathFactory) -> BothKinds:
    """Who shows how far runs are dies at the first word of one."""
    folder, heard_at, moved = tmp_path_factory.mktemp("both"), set[str](), list[Event]()
    ledger = Ledger(folder / "ledger")
    untrained, trained = make_run(folder / "meet", "B0", seed=None), make_run(folder / "meet")

    def hear(event: Event) -> None:
        if not isinstance(event, RunMoved):
            return
        moved.append(event)
        processes = psutil.Process().children(recursive=True)
        for process in processes if not heard_at else ():
            if process.name().startswith("ray::RayTrain"):
                sockets = process.net_connections("tcp")
                heard_at.update(one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN)
        if len(moved) == 1:
            next(process for process in processes if process.name().startswith("ray::Board")).kill()
        elif heard_at:
            (folder / "meet" / "go").touch()

    with pytest.MonkeyPatch.context() as patch, ledger.drive("study"):
        patch.chdir(folder)
        outcome, started_at = go(ledger, [trained, untrained], placed, hear)[0], os.getcwd()
    notes = ledger.record(untrained).notes, ledger.record(trained).notes
    return BothKinds(outcome, (untrained, trained), notes, started_at, frozenset(heard_at), len(moved))


def test_one_launch_of_both_kinds(both_kinds: BothKinds) -> None:
    """The untrained run goes to a pooled lane, and first.

    Both see paths from where the launch is, though Ray was started elsewhere. Whoever shows how far runs are may
    die, and comes again.
    """
    outcome, at = both_kinds.outcome, both_kinds.started_at
    assert both_kinds.moved > 1
    assert outcome.finished == tuple(run.id for run in both_kinds.runs)
    assert (outcome.failed, outcome.stopped) == ({}, False)
    assert both_kinds.notes == ({"size": 1, "group": False, "at": at}, {"size": 2, "group": True, "at": at})


def test_only_this_machine_reaches_a_group_of_its_own_ray(both_kinds: BothKinds) -> None:
    """Nothing that its workers listen to asks who is there."""
    assert {address.removeprefix("::ffff:") for address in both_kinds.heard_at} == {"127.0.0.1"}


def test_a_lane_that_is_kept_for_later_gives_its_core_to_groups(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds are added until a claim is decided, beside an untrained arm; there are two cores for two workers."""
    monkeypatch.setattr("orchestration.lanes.groups.groups.START_SECONDS", 60.0)
    (tmp_path / "meet").mkdir()
    (tmp_path / "meet" / "go").touch()
    untrained, another = (make_run(tmp_path / "meet", arm, seed=None) for arm in ("B0", "B00"))
    first, second = (make_run(tmp_path / "meet", seed=seed) for seed in range(2))
    lanes = Lanes(
        ledger=ledger,
        resources=Resources(workers_per_run=2, retries=0),
        on_event=lambda event: None,
        body=placed,
        warm=(),
    )
    with closing(lanes):
        for runs in ([untrained, first], [another], [second]):
            outcome = lanes.run([Job(runs=(run,)) for run in runs], more=True)
            assert set(outcome.finished) == {run.id for run in runs}
