"""What every worker of a Ray Train group does: execute the run body. Rank 0 leases, reports and stages besides."""

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
    """What the worker groups of a launch have in common. gpus and memory, in bytes: per worker.

    folder: as `started_in` has it.
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
    """What every worker of a group does. An error that is certain to come back ends the run without a retry."""
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

    def at(words: str) -> None:
        config["board"].sign.remote(run.id, rank, words)

    ray.get(config["board"].begin.remote(run.id, rank, ray.util.get_current_placement_group()))
    threading.Thread(target=_end_when_told, args=(config["board"], run.id), daemon=True).start()
    attempt = _agreed(ledger.lease(run.id) if rank == 0 else 0)
    try:
        go_to(kind.folder)
        scratch = _checkpoints(ledger, run.id, attempt)
        world = _world(kind, run, scratch, config["board"])
        job = Job(runs=(run,))
        if _agreed(int(rank == 0 and ledger.trained(run))):  # the driver may commit it between two ranks' looks
            job, _ = with_models(job, ledger)
        meter = Meter(world.device, run.precision, gpus=kind.gpus, workers=world.size)
        threading.Thread(target=_watch, args=(meter,), daemon=True).start()
        results = metered(kind.body(job, with_meter(world, meter)), meter)
        for result, is_new in billed(results, ledger):
            if rank == 0 and is_new:
                ledger.stage(result, attempt)
            at("after its training" if isinstance(result, Trained) else f"after scoring {result.task}")
        at("waiting for the others to end")
        _leave(scratch, kind)
    except Stopped:
        return  # the driver hears that the group has ended, and its next call goes on from the checkpoint
    except Exception as error:
        what = problem(error)
        if what.final:
            ledger.fail(run, attempt, what.message, what.traceback, final=True)
        raise


def _end_when_told(board: Any, run_id: str) -> None:
    """End this process, whatever it waits for, once the board says that its group stands still."""
    import ray

    while True:
        time.sleep(POLL_SECONDS)
        with suppress(ray.exceptions.RayError):  # a board that died comes again, and knows nothing
            if ray.get(board.ended.remote(run_id)):
                os._exit(1)


def _watch(meter: Meter) -> None:
    """Look at its counters also where no step does, while a long task is scored."""
    while True:
        time.sleep(POLL_SECONDS)
        meter.watch()


def _agreed(number: int) -> int:
    """Rank 0's number, on every rank; all must ask."""
    return int(_sent(number).item())


def _sent(number: int) -> Tensor:
    """Rank 0's number on every rank's device, (1,), once that comes to it."""
    import torch
    from ray.train.torch import get_device

    shared = torch.full((1,), number, device=get_device())  # made there: a copy would wait for it
    torch.distributed.broadcast(shared, src=0)
    return shared


def _checkpoints(ledger: Ledger, run_id: str, attempt: int) -> Path:
    """The folder for checkpoints; what the group reported last is in it unless something was there already.

    Beside a local ledger it is one folder for all workers and outlives the group; else one per machine.
    """
    import torch
    from ray.train import get_checkpoint, get_context

    context, reported = get_context(), get_checkpoint()
    for turn in (True, False):  # rank 0 first: a folder that all share is complete when the others look
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
    """Remove a machine's own checkpoints when all workers are done; those beside a ledger go with the commit."""
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

    rank, size, told = get_context().get_world_rank(), get_context().get_world_size(), 0.0
    assert size == run.world_size, "a run's identity holds the size of its group"
    bell = board.stopped.remote() if rank == 0 else None

    def report(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= POLL_SECONDS:
            told = time.monotonic()
            board.sign.remote(run.id, rank, place_of(progress), repr(progress))
            if rank == 0:
                board.write.remote(run.id, progress)

    def save(folder: Path, step: int) -> None:
        """Ray Train puts the files of all folders together."""
        meet({"step": step}, checkpoint=Checkpoint.from_directory(scratch) if world.keeps_scratch else None)

    earlier: Arriving | None = None

    def stopping() -> bool:
        """What rank 0 heard a step ago: to hear what it hears now would wait for all that the cards are at."""
        nonlocal earlier
        last, earlier = earlier, Arriving(_sent(int(rank == 0 and _rang(bell))))
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
    """Whether every machine has a folder of its own, as with a remote ledger."""
    return not scratch.is_relative_to(kind.url)


def _rang(bell: Any) -> bool:
    """Whether the board has answered with yes. A board that is gone for good never will."""
    import ray

    answered, _ = ray.wait([bell], timeout=0)
    with suppress(ray.exceptions.RayError):
        return bool(answered) and ray.get(bell)
    return False
