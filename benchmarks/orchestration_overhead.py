"""What a lane costs: 64 tiny runs through one, against the same runs in a plain loop and in Ray Train.

    python benchmarks/orchestration_overhead.py

A run trains a small network for 20 steps with the DeepSpeed engine. Loop and lane record every run in a ledger of
their own and take turns, so that a busy machine slows both; both put what imports have made out of the garbage
collector's sight. The first run of a process sets DeepSpeed up and is left out, like imports and the start of
processes; Ray Train pays for all of these in every run. Targets: a lane takes at most 1.25 times as long as the
loop, and at most a tenth of the time that one TorchTrainer.fit takes.
"""

from __future__ import annotations

import gc
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tables import save

from evaluators.metrics.scores import Score
from orchestration.families.contract import USUAL_IMPORTS
from orchestration.lanes.cluster import connected
from orchestration.lanes.events import Event, LaneReady, RunFinished
from orchestration.lanes.groups.fit import FASTER, trainer
from orchestration.lanes.launch import launch
from orchestration.ledger.ledger import Ledger
from orchestration.study.blocks import Resources
from orchestration.study.run import Job, Result, Run, Scored, Trained
from trainers.engine.world import World

if TYPE_CHECKING:
    import torch

RUNS, STEPS, ROUNDS, FITS = 64, 20, 5, 3


class Rows:
    """A batch of a step: (16, 32) inputs."""

    def __init__(self, step: int) -> None:
        import torch

        self.inputs = torch.randn(16, 32, generator=torch.Generator().manual_seed(step))

    def __len__(self) -> int:
        return len(self.inputs)


def loss(model: Callable[..., torch.Tensor], rows: Rows) -> dict[str, torch.Tensor]:
    return {"square": (model(rows.inputs) - rows.inputs.sum(1, keepdim=True)).square().mean()}


def tiny(job: Job, world: World) -> Iterator[Result]:
    """Two layers of 64, 20 steps."""
    import torch
    from torch import nn

    from trainers.engine.loop import Recipe, fit

    for run in job.runs:
        torch.manual_seed(run.seed or 0)
        model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
        groups = [{"params": list(model.parameters()), "lr": 0.01}]
        curve = fit(model, loss, Rows, groups=groups, recipe=Recipe(steps=STEPS), seed=run.seed or 0, world=world)
        yield Trained(run=run, curve=curve)
        yield Scored(run=run, task="loss", scores=[Score(metric="loss", value=curve[-1].loss)])


def jobs(first: int, count: int) -> list[Job]:
    """Runs of seeds that no other part of the benchmark has."""
    seeds = range(first, first + count)
    run = Run(
        family="concept",
        arm="tiny",
        backbone="none",
        seed=0,
        settings={},
        data={},
        tasks={"loss": ""},
        defining={},
        backbone_fingerprint="",
        corpus_fingerprint="",
    )
    return [Job(runs=(replace(run, seed=seed),)) for seed in seeds]


def loop(folder: Path, todo: list[Job], *, record: bool) -> float:
    """Median seconds per run in this process."""
    ledger, world, ends = Ledger(folder / "loop"), World(), []
    for job in todo:
        (run,) = job.runs
        attempt = ledger.lease(run.id) if record else 0
        for result in tiny(job, world):
            if record:
                ledger.stage(result, attempt)
                assert ledger.commit(result.entry, attempt)
        if record:
            ledger.forget(run.id)
        ends.append(time.perf_counter())
    return statistics.median(later - earlier for earlier, later in pairwise(ends))


def lane(folder: Path, todo: list[Job]) -> tuple[float, float]:
    """Median seconds per run in one lane, and seconds from the launch until it was ready."""
    ledger, ready, ends = Ledger(folder / "lane"), [], []
    began = time.perf_counter()

    def hear(event: Event) -> None:
        if isinstance(event, LaneReady):
            ready.append(time.perf_counter() - began)
        if isinstance(event, RunFinished):
            ends.append(time.perf_counter())

    resources = Resources(lanes=1, retries=0)
    outcome = launch(todo, ledger=ledger, resources=resources, on_event=hear, body=tiny)
    assert len(outcome.finished) == len(todo)
    return statistics.median(later - earlier for earlier, later in pairwise(ends)), ready[0]


def train(folder: Path, todo: list[Job], kind: Any) -> list[float]:
    """Seconds of one fit per run by this kind of trainer, with Ray Train's fastest settings."""
    import ray.train

    os.environ.update(FASTER)

    def work(config: dict[str, Job]) -> None:
        for _ in tiny(config["job"], World()):
            pass

    taken = []
    for job in todo:
        began = time.perf_counter()
        kind(
            work,
            train_loop_config={"job": job},
            scaling_config=ray.train.ScalingConfig(num_workers=1),
            run_config=ray.train.RunConfig(name=job.runs[0].id, storage_path=str(folder / "train")),
        ).fit()
        taken.append(time.perf_counter() - began)
    return taken


def main() -> None:
    os.environ.update(OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu")
    with tempfile.TemporaryDirectory() as name, connected(2):
        import ray
        from ray.train.torch import TorchTrainer

        folder = Path(name)
        for module in USUAL_IMPORTS:
            importlib.import_module(module)
        gc.freeze()
        ray.cloudpickle.register_pickle_by_value(sys.modules["__main__"])
        rounds: list[tuple[float, ...]] = []
        for number in range(ROUNDS):
            todo = jobs(number * RUNS, RUNS)
            bare = loop(folder, todo, record=False)
            recorded = loop(folder, todo, record=True)
            rounds.append((bare, recorded, *lane(folder, todo)))
        fits = [
            train(folder, jobs(number * 10**6, FITS), kind) for number, kind in ((2, TorchTrainer), (3, trainer()))
        ]
    report(rounds, *fits)


def report(rounds: list[tuple[float, ...]], fits: list[float], groups: list[float]) -> None:
    """rounds: seconds per run of the bare loop, the recorded loop and the lane, and until that was ready.

    fits, groups: seconds of a fit of Ray Train as it comes, and as worker groups use it.
    """
    bare, recorded, one, started = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratios = [pooled / plain for _, plain, pooled, _ in rounds]
    fit, group = statistics.mean(fits[1:]), statistics.mean(groups[1:])
    ways = {
        "plain loop, nothing recorded": bare,
        "plain loop, recorded in a ledger": recorded,
        "one lane": one,
        "one TorchTrainer.fit per run": fit,
        "one fit of a worker group per run": group,
    }
    save(
        "orchestration_overhead",
        f"What orchestration costs: {RUNS} runs of {STEPS} steps",
        [
            {"way": way, "ms per run": 1000 * seconds, "against the recorded loop": seconds / recorded}
            for way, seconds in ways.items()
        ],
        [
            f"One lane takes {statistics.median(ratios):.2f} times as long as the recorded loop: the median of "
            f"{ROUNDS} rounds in which they took turns ({', '.join(f'{ratio:.2f}' for ratio in ratios)}).",
            "The loop commits a run before the next begins; a lane's driver commits it beside the next.",
            f"A lane is ready {started:.1f} s after the launch; that is not in its row.",
            f"TorchTrainer.fit with Ray Train's fastest settings and one worker: {FITS} fits measured "
            f"({', '.join(f'{seconds:.1f}' for seconds in fits)} s), the first left out. That is "
            f"{fit / one:.0f} times the time of a run in a lane.",
            f"A worker group's fit leaves out what Ray Train starts and waits for to no use here "
            f"({', '.join(f'{seconds:.1f}' for seconds in groups)} s): {fit / group:.2f} times as fast.",
            "Medians over the runs of a round. One thread per process; the machine's load average was "
            f"{os.getloadavg()[0]:.1f} at the end.",
        ],
        packages=("ray", "torch", "deepspeed"),
    )


if __name__ == "__main__":
    main()
