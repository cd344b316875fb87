"""Worker groups on a real Ray Train: two gloo workers, checkpoints, a worker killed in mid run."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluators.scores import Score
from orchestration.cluster import connected
from orchestration.lanes import Event, Outcome, RunFailed, RunFinished, RunMoved, RunStarted, launch
from orchestration.ledger import Ledger
from orchestration.run import Job, Result, Run
from orchestration.schema import Resources
from trainers.world import Progress, World

pytestmark = pytest.mark.timeout(180)
STEPS = 40


@pytest.fixture(scope="module", autouse=True)
def ray_of_two() -> Iterator[None]:
    import ray

    with connected(2):
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger")
    with ledger.drive("study"):
        yield ledger


def make_run(folder: Path, seed: int = 0, **settings: object) -> Run:
    folder.mkdir(exist_ok=True)
    return Run(
        family="concept",
        arm="A",
        backbone="tiny",
        seed=seed,
        settings=settings,
        data={"folder": str(folder)},
        evaluate=(),
        defining=settings,
        backbone_fingerprint="b",
        corpus_fingerprint="c",
        world_size=2,
    )


def summing(job: Job, world: World) -> Iterator[tuple[Run, Result]]:
    """Step by step adds step · (rank + 1) over all ranks; keeps the sum so far in its checkpoints.

    At the first start it goes no further than step 25.
    """
    import time

    import torch

    (run,) = job.runs
    assert world.scratch is not None
    assert world.save is not None
    folder, state = Path(run.data["folder"]), world.scratch / "state.json"
    (folder / f"pid-{world.rank}").write_text(str(os.getpid()))
    step, total = json.loads(state.read_text()) if state.exists() else (0, 0.0)
    with (folder / f"starts-{world.rank}").open("a") as file:
        file.write(f"{step}\n")
    while step < STEPS:
        share = torch.tensor([float(step * (world.rank + 1))])
        torch.distributed.all_reduce(share)
        step, total = step + 1, total + share.item()
        world.report(Progress(step=step, steps=STEPS, loss=total))
        while step == 25 and len((folder / f"starts-{world.rank}").read_text().split()) == 1:
            time.sleep(0.1)
            world.report(Progress(step=step, steps=STEPS, loss=total))
        if world.checkpoint_every and step % world.checkpoint_every == 0:
            if world.rank == 0:
                state.write_text(json.dumps([step, total]))
            torch.distributed.barrier()
            world.save(world.scratch, step)
    yield run, Result(scores=[Score(metric="sum", value=total)], notes={"size": world.size})


def failing(job: Job, world: World) -> Iterator[tuple[Run, Result]]:
    """Rank 1 raises while rank 0 waits for it."""
    import torch

    from trainers.engine import Diverged

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
    yield run, Result(scores=[])


def go(
    ledger: Ledger, runs: list[Run], body: Callable, on_event: Callable[[Event], None] = lambda event: None
) -> tuple[Outcome, list[Event]]:
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        on_event(event)

    resources = Resources(workers_per_run=2, retries=1, checkpoint_every=10)
    jobs = [Job(runs=(run,)) for run in runs]
    return launch(jobs, ledger=ledger, resources=resources, on_event=hear, body=body), events


def starts(folder: Path, rank: int) -> list[int]:
    return [int(line) for line in (folder / f"starts-{rank}").read_text().split()]


def test_a_worker_that_is_killed(ledger: Ledger, tmp_path: Path) -> None:
    """The group goes on from its last checkpoint and ends with the sum of an undisturbed run: 3 · (0 + … + 39)."""
    run = make_run(tmp_path / "meet")
    killed: list[Event] = []

    def kill(event: Event) -> None:
        if isinstance(event, RunMoved) and event.progress.step == 25 and not killed:
            killed.append(event)
            os.kill(int((tmp_path / "meet" / "pid-1").read_text()), signal.SIGKILL)

    outcome, events = go(ledger, [run], summing, kill)
    assert outcome.finished == (run.id,)
    assert [type(event) for event in events if not isinstance(event, RunMoved)] == [RunStarted, RunFinished]
    record = ledger.record(run.id)
    assert record.metrics["sum"].value == 3 * sum(range(STEPS))
    assert (record.attempt, record.notes["size"]) == (2, 2)
    assert starts(tmp_path / "meet", 0) == starts(tmp_path / "meet", 1) == [0, 20]
    assert os.listdir(Path(ledger.url) / ".scratch") == []
    assert not (Path(ledger.url) / ".train" / run.id).exists()


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
    assert len(starts(tmp_path / "meet", 1)) == attempts
    assert "failing" in Path(failure.log).read_text()
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert not failed.retrying
