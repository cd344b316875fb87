"""All arms and seeds as one stack, against a plain loop in one process and against one process per run.

    python benchmarks/stacked_adapters.py

Every contestant trains the same models on the same made-up task (4,000 pairs, width 384), one thread each. Times
are CPU time of the process, the best of several interleaved rounds: a shared machine disturbs wall time more. With
a CUDA device the stack and the loop are timed there as well, by the wall.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tables import save
from torch import Tensor, nn

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.rows import PairTask
from trainers.difficulty.data import TaskData, task_data
from trainers.difficulty.fit import fit_stack, train_all
from trainers.difficulty.settings import PAIR_FORMS, Settings
from trainers.difficulty.stack import Model, pair_target
from trainers.difficulty.stack_arithmetic import batch_rows
from trainers.engine.streams import torch_stream

WIDTH, PAIRS = 384, 4000
SHAPES = ((128, 64, 128), (64, 32, 64))  # d_h, m, batch
ARMS = tuple(  # one that is matched waits for a treated arm; one that is taught is a stack of its own
    name for name, form in PAIR_FORMS.items() if not (form.matched or form.taught)
)
SEEDS = range(3)
ROUNDS, STEPS = 4, 200
PROCESS_STEPS, PROCESSES = 600, 3


def made_up_task() -> TaskData:
    draw = np.random.default_rng(0)

    def split(kind: str, n: int) -> Pairs:
        a, b = (tuple(f"{kind} {side} {i}" for i in range(n)) for side in "ab")
        return Pairs(tuple(map(str, range(n))), a, b, draw.integers(0, 26, n) / 25)

    task = PairTask("made up", True, split("train", PAIRS), split("evaluation", 32), "validation", "made up")
    judged = {"train": draw.random(PAIRS), "evaluation": draw.random(32)}
    return task_data(task, draw.normal(size=(len(task.sentences), WIDTH)), judged)


class PlainAdapter(nn.Module):
    """The pair adapter as one would write it for one model, from the library's own layers."""

    def __init__(self, d_h: int, m: int) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(WIDTH, d_h), nn.LayerNorm(d_h)
        end = nn.Linear(m, 1)
        nn.init.zeros_(end.weight)
        nn.init.zeros_(end.bias)
        self.residual = nn.Sequential(nn.Linear(2 * d_h, m), nn.GELU(), end)
        self.hardness = nn.Sequential(nn.Linear(2 * d_h, m), nn.GELU(), nn.Linear(m, 1))

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        h_a, h_b = self.norm(self.project(a)), self.norm(self.project(b))
        features = torch.cat([(h_a - h_b).abs(), h_a * h_b], 1)
        return torch.tanh(self.residual(features))[:, 0], torch.sigmoid(self.hardness(features))[:, 0]


def plain_run(settings: Settings, seed: int, data: TaskData, device: str) -> None:
    """One run of a plain loop: fused AdamW and the library's clipping."""
    form, side = PAIR_FORMS[settings.form], data.train
    torch.manual_seed(seed)
    adapter = PlainAdapter(*settings.sizes(WIDTH)).to(device)
    optimiser = torch.optim.AdamW(adapter.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    x, a, b = (torch.from_numpy(part).to(device) for part in (data.x, side.a, side.b))
    gold = torch.from_numpy(side.gold.astype(np.float32)).to(device)
    anchor = torch.from_numpy(side.anchor).to(device)
    target = pair_target(Model(settings, seed, settings.gamma), data).to(device)
    order = batch_rows(PAIRS, settings.steps, settings.batch_size, torch_stream(seed, "data")).to(device)
    for rows in order:
        delta, c = adapter(x[a[rows]], x[b[rows]])
        score = anchor[rows] + settings.gamma * (c * delta if form.gated else delta)
        y = gold[rows]
        above = y[:, None] > y[None, :]
        rank = F.softplus(-(score[:, None] - score[None, :]) / settings.tau)[above].mean()
        loss = F.mse_loss(score, y) + settings.lambda_rank * rank
        if form.target is not None:
            loss = loss + settings.lambda_hard * F.mse_loss(c, target[rows])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(adapter.parameters(), 1.0)
        optimiser.step()


def requests(shape: tuple[int, int, int], steps: int) -> list[tuple[Settings, int | None]]:
    d_h, m, batch = shape
    return [
        (Settings(form=arm, d_h=d_h, m=m, batch_size=batch, steps=steps), seed) for seed in SEEDS for arm in ARMS
    ]


def one_stack(shape: tuple[int, int, int], steps: int, data: TaskData, device: str) -> None:
    """Training alone, cut into stacks as `fit_stack` cuts them."""
    train_all(requests(shape, steps), data, threads=1, device=device, advance=lambda steps: None)


def plain_loop(shape: tuple[int, int, int], steps: int, data: TaskData, device: str) -> None:
    for settings, seed in requests(shape, steps):
        assert seed is not None
        plain_run(settings, seed, data, device)


def halved(shape: tuple[int, int, int], steps: int, data: TaskData, device: str) -> None:
    """The stack with matrix products rounded to bfloat16: not the same numbers, so never used."""
    products: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before, products.fp32_precision = products.fp32_precision, "bf16"
    try:
        one_stack(shape, steps, data, device)
    finally:
        products.fp32_precision = before


def milliseconds(
    contestants: dict[str, Callable[..., None]], shape: tuple[int, int, int], data: TaskData, device: str
) -> dict[str, float]:
    """Milliseconds per model and step of each contestant, best of interleaved rounds."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            start = clock()
            contestant(shape, STEPS, data, device)
            if device != "cpu":
                torch.cuda.synchronize()
            best[name] = min(best[name], clock() - start)
    return {name: 1e3 * seconds / (STEPS * len(ARMS) * len(SEEDS)) for name, seconds in best.items()}


def process_seconds(shape: tuple[int, int, int]) -> float:
    """CPU seconds of one plain run in a process of its own: start, imports, 600 steps. Mean of three."""
    before = _children()
    command = [sys.executable, __file__, "--one", *map(str, shape)]
    for _ in range(PROCESSES):
        subprocess.run(command, check=True)
    return (_children() - before) / PROCESSES


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stack_seconds(shape: tuple[int, int, int], data: TaskData) -> float:
    """CPU seconds of one of the runs when all are one stack, 600 steps."""
    start = time.process_time()
    fit_stack(requests(shape, PROCESS_STEPS), [data], evaluate=lambda *_: [], retrieval=False)
    return (time.process_time() - start) / (len(ARMS) * len(SEEDS))


def main() -> None:
    torch.set_num_threads(1)
    data = made_up_task()
    if sys.argv[1:2] == ["--one"]:
        d_h, m, batch = map(int, sys.argv[2:])
        (settings, seed), *_ = requests((d_h, m, batch), PROCESS_STEPS)
        plain_run(settings, seed or 0, data, "cpu")
        return
    rows: list[dict[str, Any]] = []
    for device in ("cpu", *(("cuda",) if torch.cuda.is_available() else ())):
        for shape in SHAPES:
            contestants = {"loop": plain_loop, "stack": one_stack} | ({"bf16": halved} if device == "cpu" else {})
            spent = milliseconds(contestants, shape, data, device)
            process = process_seconds(shape) if device == "cpu" else float("nan")
            stacked = stack_seconds(shape, data) if device == "cpu" else float("nan")
            rows.append(
                {
                    "device": device,
                    "d_h / m / batch": " / ".join(map(str, shape)),
                    "plain loop, ms a step": spent["loop"],
                    "one stack, ms a step": spent["stack"],
                    "gain": spent["loop"] / spent["stack"],
                    "bf16 products, ms a step": spent.get("bf16", float("nan")),
                    "one process per run, s a run": process,
                    "one stack, s a run": stacked,
                    "gain over processes": process / stacked,
                }
            )
    notes = [
        f"{len(ARMS)} arms x {len(SEEDS)} seeds, one thread, float32; a step is one optimiser step of one model",
        f"loop, stack and bf16: CPU time, best of {ROUNDS} interleaved rounds of {STEPS} steps of training",
        f"a run is {PROCESS_STEPS} steps: of the plain loop in a process of its own, which pays its start and "
        "imports, against its share of the stack, predictions included",
        "bf16 products give other numbers than float32 and are not used by the family",
        "cuda: measured" if torch.cuda.is_available() else "cuda: the same code runs there; not measured here",
    ]
    save("stacked_adapters", "Stacked adapters", rows, notes, packages=("torch",))


if __name__ == "__main__":
    main()
