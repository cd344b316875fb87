"""Checkpoints of a run in its scratch folder: whole or absent, the newest one kept."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from corpora.store.cache import digest_of
from corpora.store.durable import flush
from trainers.engine.deep_speed import pickled_classes
from trainers.engine.world import Progress, World

NAME = re.compile(r"step-(\d+)")
DRAFT = "draft"
DIGESTS = "digests_4.json"  # the number is raised when checkpoints hold something else: older ones do not fit then
log = logging.getLogger(__name__)


def save(engine: Any, world: World, curve: list[Progress]) -> None:
    """Write weights, optimizer, scheduler, curve and cost under a draft name, rename it, drop older checkpoints.

    Every rank must call it; world.save is then called with the finished folder on every rank. Under ZeRO each rank
    writes a part. If each machine has a scratch folder of its own, that holds the parts of its ranks and the
    digests of all: a checkpoint is whole when every part is.
    """
    assert world.scratch is not None
    name, draft = f"step-{curve[-1].step}", world.scratch / DRAFT
    if world.keeps_scratch:
        shutil.rmtree(draft, ignore_errors=True)
    dist.barrier()
    state = {"curve": [asdict(progress) for progress in curve], "cost": dict(world.so_far())}
    engine.save_checkpoint(str(draft), tag=name, client_state=state, save_latest=False)
    dist.barrier()
    digests = _gathered(_digests(draft / name) if world.keeps_scratch else {}, engine.device)
    if world.keeps_scratch:
        (draft / name / DIGESTS).write_text(json.dumps(digests))
        for file in (draft / name).rglob("*"):
            flush(file)
        os.replace(draft / name, world.scratch / name)
        flush(world.scratch)
        for step, folder in _finished(world.scratch):
            if step < curve[-1].step:
                shutil.rmtree(folder)
    dist.barrier()
    if world.save is not None:
        world.save(world.scratch / name, curve[-1].step)


def resume(engine: Any, world: World) -> list[Progress]:
    """Load the newest whole checkpoint into the engine and return its curve; an empty curve if there is none.

    A checkpoint whose files differ from what was written, on any rank, is removed unread, and an older one is
    tried, which a killed run may have left.
    world.go_on gets the cost recorded in the checkpoint, {} from old versions that recorded none.
    """
    assert world.scratch is not None
    world.scratch.mkdir(parents=True, exist_ok=True)
    folder = _newest_whole(world.scratch, engine.device)
    if folder is None:
        return []
    with _restricted_pickle():
        _, client_state = engine.load_checkpoint(str(world.scratch), tag=folder.name)
    world.go_on(client_state.get("cost", {}))
    return [Progress(**fields) for fields in client_state["curve"]]


def _newest_whole(scratch: Path, device: torch.device) -> Path | None:
    """The newest checkpoint whose files on all ranks are as they were written. Newer ones are removed.

    The ranks agree on the checkpoint to examine, as each machine may have a scratch folder of its own.
    """
    tried = None
    while step := _reduced(_newest(scratch, tried), dist.ReduceOp.MAX, device):
        folder, tried = scratch / f"step-{step}", step
        if _reduced(int(_intact(folder)), dist.ReduceOp.MIN, device):
            return folder
        log.warning("checkpoints: %s is not as it was written, and is not gone on from", folder)
        shutil.rmtree(folder, ignore_errors=True)  # on every machine
        dist.barrier()
    return None


def _newest(scratch: Path, before: int | None) -> int:
    """The last step that has a checkpoint, before step `before` if given; 0 if there is none."""
    return max((step for step, _ in _finished(scratch) if before is None or step < before), default=0)


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of every file of a checkpoint, by its path in the checkpoint's folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != DIGESTS)
    return {file.relative_to(folder).as_posix(): digest_of(file) for file in files}


def _gathered(digests: dict[str, str], device: torch.device) -> dict[str, str]:
    """The digests of all ranks, on every rank. Every rank must call it."""
    own = torch.frombuffer(bytearray(json.dumps(digests).encode()), dtype=torch.uint8).to(device)
    longest = _reduced(len(own), dist.ReduceOp.MAX, device)
    parts = [torch.empty(longest, dtype=torch.uint8, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.nn.functional.pad(own, (0, longest - len(own)), value=ord(" ")))
    return {name: digest for part in parts for name, digest in json.loads(bytes(part.tolist())).items()}


def _intact(folder: Path) -> bool:
    """True if the files in this folder are those that all ranks wrote."""
    try:
        return json.loads((folder / DIGESTS).read_text()) == _digests(folder)
    except (OSError, ValueError):
        return False


def _reduced(number: int, operation: Any, device: torch.device) -> int:
    """Reduce the numbers of all ranks to one, which every rank gets. Every rank must call it."""
    reduced = torch.tensor(number, device=device)
    dist.all_reduce(reduced, op=operation)
    return int(reduced.item())


def _finished(scratch: Path) -> list[tuple[int, Path]]:
    found = ((NAME.fullmatch(folder.name), folder) for folder in scratch.iterdir())
    return [(int(match.group(1)), folder) for match, folder in found if match]


@contextmanager
def _restricted_pickle() -> Iterator[None]:
    """Make torch unpickle only tensors, plain data and DeepSpeed's classes: DeepSpeed sets no limits itself."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        with torch.serialization.safe_globals([*pickled_classes()]):
            yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
