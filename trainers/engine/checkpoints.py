"""Checkpoints of a run in its scratch folder: whole or absent, the newest one kept."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from corpora.store.cache import digest_of
from corpora.store.durable import flush
from trainers.engine.world import Progress, World

NAME = re.compile(r"step-(\d+)")
DRAFT = "draft"
DIGESTS = "digests_4.json"  # the number is raised when checkpoints hold something else: older ones do not fit then
log = logging.getLogger(__name__)


def save(engine: Any, world: World, curve: list[Progress]) -> None:
    """Write weights, optimizer, scheduler, curve and cost under a draft name, rename, then drop older ones.

    Every rank calls it; world.save hears of the finished folder on every rank. Under ZeRO each rank writes a part.
    Where machines have scratch folders of their own, each holds its ranks' parts, with the digests of all: the
    checkpoint is whole where all parts are.
    """
    assert world.scratch is not None
    name, draft = f"step-{curve[-1].step}", world.scratch / DRAFT
    if world.keeps_scratch:
        shutil.rmtree(draft, ignore_errors=True)
    dist.barrier()
    state = {"curve": [asdict(progress) for progress in curve], "cost": dict(world.so_far())}
    engine.save_checkpoint(str(draft), tag=name, client_state=state, save_latest=False)
    dist.barrier()
    digests = _of_all(_digests(draft / name) if world.keeps_scratch else {}, engine.device)
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


def resume(engine: Any, world: World, readable: Sequence[type]) -> list[Progress]:
    """Put the newest whole checkpoint into the engine and return its curve; an empty curve without one.

    readable: the classes that may come out of the files beside tensors and plain data. A checkpoint that is not as
    it was written, on any rank, is not opened but removed; a kill may have left an older one. world.go_on hears
    what the run had cost up to it; an old one, which tells no cost, is continued all the same.
    """
    assert world.scratch is not None
    world.scratch.mkdir(parents=True, exist_ok=True)
    folder = _newest_whole(world.scratch, engine.device)
    if folder is None:
        return []
    with _only(readable):
        _, client_state = engine.load_checkpoint(str(world.scratch), tag=folder.name)
    world.go_on(client_state.get("cost", {}))
    return [Progress(**fields) for fields in client_state["curve"]]


def _newest_whole(scratch: Path, device: torch.device) -> Path | None:
    """The newest checkpoint whose files on all ranks are those that were written. What is newer is removed.

    Which one is looked at the ranks agree on, as each machine may have its own.
    """
    tried = None
    while step := _agreed(_newest(scratch, tried), dist.ReduceOp.MAX, device):
        folder, tried = scratch / f"step-{step}", step
        if _agreed(int(_intact(folder)), dist.ReduceOp.MIN, device):
            return folder
        log.warning("checkpoints: %s is not as it was written, and is not gone on from", folder)
        shutil.rmtree(folder, ignore_errors=True)  # on every machine, and out of the way of the next one
        dist.barrier()
    return None


def _newest(scratch: Path, before: int | None) -> int:
    """The last step that has a folder, of those before another one; 0 where none has."""
    return max((step for step, _ in _finished(scratch) if before is None or step < before), default=0)


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of every file of a checkpoint, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != DIGESTS)
    return {file.relative_to(folder).as_posix(): digest_of(file) for file in files}


def _of_all(digests: dict[str, str], device: torch.device) -> dict[str, str]:
    """Those of all ranks, on every rank. All must ask."""
    own = torch.frombuffer(bytearray(json.dumps(digests).encode()), dtype=torch.uint8).to(device)
    most = _agreed(len(own), dist.ReduceOp.MAX, device)
    told = [torch.empty(most, dtype=torch.uint8, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(told, torch.nn.functional.pad(own, (0, most - len(own)), value=ord(" ")))
    return {name: digest for one in told for name, digest in json.loads(bytes(one.tolist())).items()}


def _intact(folder: Path) -> bool:
    """Whether the files here are those that were written, by all ranks."""
    try:
        return json.loads((folder / DIGESTS).read_text()) == _digests(folder)
    except (OSError, ValueError):
        return False


def _agreed(number: int, by: Any, device: torch.device) -> int:
    """Of the numbers of all ranks one, on every rank. All must ask."""
    agreed = torch.tensor(number, device=device)
    dist.all_reduce(agreed, op=by)
    return int(agreed.item())


def _finished(scratch: Path) -> list[tuple[int, Path]]:
    found = ((NAME.fullmatch(folder.name), folder) for folder in scratch.iterdir())
    return [(int(match.group(1)), folder) for match, folder in found if match]


@contextmanager
def _only(readable: Sequence[type]) -> Iterator[None]:
    """DeepSpeed reads its files with an unrestricted pickle; make torch refuse all but tensors and plain data."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        with torch.serialization.safe_globals(list(readable)):
            yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
