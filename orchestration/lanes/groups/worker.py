"""The code of every worker of a Ray Train group: executes the run body. Rank 0 also leases, reports and stages."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.lanes.bodies import billed, metered, problem, with_meter, with_models
from orchestration.lanes.checkpoints import private
from orchestration.lanes.cluster import go_to
from orchestration.lanes.leases import leased
from orchestration.lanes.waits import POLL_SECONDS, place_of
from orchestration.ledger.drivers import Driver
from orchestration.study.run import Body, Job, Run, Trained
from trainers.engine.meter import Meter

if TYPE_CHECKING:
    from torch import Tensor

    from orchestration.ledger.ledger import Ledger
    from trainers.engine.world import Progress, World


@dataclass(frozen=True, kw_only=True)
class GroupKind:
    """The settings that all worker groups of a launch share. gpus and memory (bytes): per worker.

    folder: from `started_in`.
    """

    body: Body
    url: str
    driver: Driver | None
    threads: int
    gpus: float
    memory: int
    retries: int
    checkpoint_every: int
    folder: str | None


def train(config: dict[str, Any]) -> None:
    """Execute a run as one worker of its group. An error that is certain to recur ends the run without a retry.

    Returns at once if another driver has begun or finished the run meanwhile: this one queues it again.
    """
    import ray
    from ray.train import get_context

    from orchestration.ledger.ledger import Ledger
    from trainers.engine.world import Stopped

    kind, run = config["kind"], config["run"]
    ledger = Ledger(kind.url, driver=kind.driver)
    known = ledger.failure(run.id)
    if known is not None and known.final and known.attempt > config["before"]:
        return
    rank = get_context().get_world_rank()

    def report_place(words: str) -> None:
        config["board"].sign.remote(run.id, rank, words)

    ray.get(config["board"].begin.remote(run.id, rank, ray.util.get_current_placement_group()))
    threading.Thread(target=_end_when_told, args=(config["board"], run.id), daemon=True).start()
    attempt = _of_rank_0(_attempt(run, ledger) if rank == 0 else 0)
    if not attempt:
        return
    try:
        go_to(kind.folder)
        scratch = _checkpoints(ledger, run.id, attempt)
        world = _world(kind, run, scratch, config["board"])
        job = Job(runs=(run,))
        if _of_rank_0(int(rank == 0 and ledger.trained(run))):  # the driver may commit between two ranks' looks
            job, _ = with_models(job, ledger)
        meter = Meter(world.device, run.precision, gpus=kind.gpus, workers=world.size)
        threading.Thread(target=_watch, args=(meter,), daemon=True).start()
        results = metered(kind.body(job, with_meter(world, meter)), meter)
        for result, is_new in billed(results, ledger):
            if rank == 0 and is_new:
                ledger.stage(result, attempt)
            report_place("after its training" if isinstance(result, Trained) else f"after scoring {result.task}")
        report_place("waiting for the others to end")
        _leave(scratch, kind)
    except Stopped:
        return  # the group ends; the next start of the run continues from the checkpoint
    except Exception as error:
        why = problem(error)
        if why.final:
            ledger.fail(run, attempt, why.message, why.traceback, final=True)
        raise


def _attempt(run: Run, ledger: Ledger) -> int:
    """The number of the group's attempt; 0 if another driver is working on the run, or has finished it."""
    return leased([run], ledger).attempts.get(run.id, 0)


def _end_when_told(board: Any, run_id: str) -> None:
    """Exit this process, even if it hangs, once the driver has ended its group through the board."""
    import ray

    while True:
        time.sleep(POLL_SECONDS)
        with suppress(ray.exceptions.RayError):  # a board that died is restarted empty
            if ray.get(board.ended.remote(run_id)):
                os._exit(1)


def _watch(meter: Meter) -> None:
    """Read the meter's counters regularly, also while a long task is scored and no steps do so."""
    while True:
        time.sleep(POLL_SECONDS)
        meter.watch()


def _of_rank_0(number: int) -> int:
    """Rank 0's number, on every rank. Every rank must call it."""
    return int(_broadcast(number).item())


def _broadcast(number: int) -> Tensor:
    """Rank 0's number as a tensor (1,) on every rank's device, without waiting for it."""
    import torch
    from ray.train.torch import get_device

    shared = torch.full((1,), number, device=get_device())  # made on the device: a copy would wait for it
    torch.distributed.broadcast(shared, src=0)
    return shared


def _checkpoints(ledger: Ledger, run_id: str, attempt: int) -> Path:
    """The folder for checkpoints; an empty one is filled with the checkpoint that the group reported last.

    With a local ledger all workers share one folder, which outlives the group; otherwise each machine has one.
    """
    import torch
    from ray.train import get_checkpoint, get_context

    context, reported = get_context(), get_checkpoint()
    for turn in (True, False):  # rank 0 first, so that a shared folder is complete when the others look
        if turn == (context.get_world_rank() == 0):
            folder = ledger.scratch(run_id, attempt) or private(ledger, run_id, attempt)
            folder.mkdir(exist_ok=True)
            if reported is not None and context.get_local_rank() == 0 and not any(folder.iterdir()):
                draft = reported.to_directory(f"{folder}.draft")
                folder.rmdir()
                os.rename(draft, folder)
        torch.distributed.barrier()
    return folder


def _leave(scratch: Path, kind: GroupKind) -> None:
    """Remove a machine's own checkpoints when all workers are done; those in a ledger go with the commit."""
    import torch
    from ray.train import get_context

    torch.distributed.barrier()
    if get_context().get_local_rank() == 0 and _is_of_machine(scratch, kind):
        shutil.rmtree(scratch, ignore_errors=True)


def _world(kind: GroupKind, run: Run, scratch: Path, board: Any) -> World:
    from ray.train import Checkpoint, get_context
    from ray.train import report as meet
    from ray.train.torch import get_device

    from trainers.engine.transfers import Arriving
    from trainers.engine.world import World

    rank, size, reported = get_context().get_world_rank(), get_context().get_world_size(), 0.0
    assert size == run.world_size, "a run's identity holds the size of its group"
    bell = board.stopped.remote() if rank == 0 else None

    def report(progress: Progress) -> None:
        nonlocal reported
        if time.monotonic() - reported >= POLL_SECONDS:
            reported = time.monotonic()
            board.sign.remote(run.id, rank, place_of(progress), repr(progress))
            if rank == 0:
                board.write.remote(run.id, progress)

    def save(folder: Path, step: int) -> None:
        """Report the checkpoint to Ray Train, which merges the files of all ranks' folders."""
        meet({"step": step}, checkpoint=Checkpoint.from_directory(scratch) if world.keeps_scratch else None)

    earlier: Arriving | None = None

    def stopping() -> bool:
        """What rank 0 knew one step ago, as reading what it knows now would wait for the GPUs."""
        nonlocal earlier
        last, earlier = earlier, Arriving(_broadcast(int(rank == 0 and _rang(bell))))
        return last is not None and bool(last.read()[0])

    world = World(
        rank=rank,
        size=size,
        device=str(get_device()),
        precision=run.precision,
        zero_stage=run.zero_stage,
        threads=kind.threads,
        scratch=scratch,
        local_rank=get_context().get_local_rank() if _is_of_machine(scratch, kind) else None,
        checkpoint_every=kind.checkpoint_every,
        report=report,
        save=save,
        stopping=stopping,
    )
    return world


def _is_of_machine(scratch: Path, kind: GroupKind) -> bool:
    """True if every machine has its own scratch folder, as with a remote ledger."""
    return not scratch.is_relative_to(kind.url)


def _rang(bell: Any) -> bool:
    """True if the board has answered that the driver wants to stop; False also if the board is gone."""
    import ray

    answered, _ = ray.wait([bell], timeout=0)
    with suppress(ray.exceptions.RayError):
        return bool(answered) and ray.get(bell)
    return False
