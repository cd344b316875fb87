"""Trains by a command: its environment and folder, its progress, and its product.

A retry finds the files of the earlier attempt in its `{out}`, under the same path, so a script that resumes by
itself goes on from its checkpoints.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from corpora.command.corpus import CommandCorpus
from corpora.store.cache import key_of
from corpora.store.durable import publish
from trainers.command.process import PYTHON, CommandFailed, Running, lines_of, running
from trainers.command.product import LOG, Product, left_in, opened
from trainers.command.progress import curve_of
from trainers.command.settings import Settings, command_of
from trainers.engine.world import GROUP, Progress, Stopped, World
from trainers.errors import TrainerError

POLL_SECONDS = 0.2
COST, KEEP_SECONDS = "cost.json", 5.0  # the cost of the run so far, written every 5 s


def read(settings: Settings, folder: Path, world: World) -> Product:
    """Open an unchanged backbone, or the product of a command."""
    return opened(folder, world)


def fit(
    settings: Settings, backbone: Path | None, corpus: CommandCorpus, seed: int, world: World
) -> tuple[Product, list[Progress]]:
    """Run the command to its end. The curve has a point for each step whose loss it printed.

    Every worker of a group runs the command, as torchrun would start it. CommandFailed, CommandRefused or
    NothingLeft for a command that went wrong; Stopped when asked to stop. Files of a stopped command are kept.
    """
    if world.scratch:
        room, kept = None, world.scratch
    else:
        room = TemporaryDirectory(prefix="semray-command-")
        kept = Path(room.name)
    log = kept / (LOG if world.rank == 0 else f"{LOG}.{world.rank}")
    with _same_path(kept) as place:
        out = place / "out"
        if out.is_file():  # of an attempt that put it there
            out.unlink()
        out.mkdir(exist_ok=True)
        given = {"seed": str(seed), "out": str(out), "backbone": str(backbone or "")}
        words = command_of(settings, given)
        with _billed(world, kept) as metered, running(words, _environment(given, world), log) as command:
            _follow(command, settings.timeout, metered)
    notes = {"code": "; ".join(corpus.states)} if corpus.states else {}
    left = (
        left_in(kept / "out", world, notes=notes, log=log, room=room) if world.rank == 0 else opened(kept, world)
    )
    return left, curve_of(lines_of(log))


@contextmanager
def _billed(world: World, kept: Path) -> Iterator[World]:
    """The world with the cost of earlier attempts added. Writes the cost so far to a file for later attempts.

    Earlier attempts count even if the command does not resume from them.
    """
    place, kept_at = kept / COST, time.monotonic()
    if world.rank == 0 and place.exists():
        world.go_on(json.loads(place.read_text()))

    def keep() -> None:
        draft = place.with_suffix(".draft")
        with suppress(OSError):  # a newer attempt may have moved the folder; no run fails for its cost
            draft.write_text(json.dumps(dict(world.so_far())))
            publish(draft, place)

    def report(progress: Progress) -> None:
        nonlocal kept_at
        world.report(progress)
        if time.monotonic() - kept_at >= KEEP_SECONDS and world.rank == 0:
            keep()
            kept_at = time.monotonic()

    try:
        yield replace(world, report=report)
    finally:
        if world.rank == 0:
            keep()


def _follow(command: Running, timeout: float | None, world: World) -> None:
    """Wait until the commands of all workers have succeeded. One that fails or takes too long ends them all."""
    last = Progress(step=0, steps=0, loss=0.0, doing=f"starting {_script_name(command)}")
    while True:
        code = command.code
        last = command.news() or last
        # any output shows that it goes on, even without a step
        world.report(replace(last, figures={**last.figures, "bytes printed": command.printed}))
        late = timeout is not None and command.seconds > timeout
        failed, busy = _anywhere([bool(code) or late, code is None], world)
        if failed:
            if late:
                command.kill()
                raise command.failure(f"was ended after its timeout of {timeout:g} s")
            command.check()
            raise CommandFailed("the command of another worker failed")
        if not busy:
            return
        if world.stopping():
            command.stop()
            raise Stopped
        time.sleep(POLL_SECONDS)


def _script_name(command: Running) -> str:
    """The script that an interpreter runs, else the program."""
    named = [word for word in command.words[:2] if word not in PYTHON and not word.startswith("-")]
    return Path(named[0] if named else command.words[0]).name


def _anywhere(states: list[bool], world: World) -> list[bool]:
    """For each state, whether it is true on any worker. All workers must call this together."""
    if world.size == 1:
        return states
    import torch

    shared = torch.tensor(states, dtype=torch.int32, device=world.device)
    torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
    return [bool(one) for one in shared.tolist()]


def _environment(given: Mapping[str, str], world: World) -> dict[str, str]:
    """The command's environment: this process's, the placeholders, and a group's variables. It is not recorded."""
    own = {name: value for name, value in os.environ.items() if name not in GROUP}
    own |= {f"SEMRAY_{name.upper()}": value for name, value in given.items()}
    own |= {"SEMRAY_PRECISION": world.precision, "SEMRAY_DEVICE": world.device, "PYTHONUNBUFFERED": "1"}
    return own if world.size == 1 else own | _group(world)


def _group(world: World) -> dict[str, str]:
    """The variables that torchrun sets for each worker: the group's address, with a free port of rank 0."""
    import torch

    port = torch.tensor([_free_port() if world.rank == 0 else 0], device=world.device)
    torch.distributed.broadcast(port, src=0)
    return {
        "RANK": str(world.rank),
        "WORLD_SIZE": str(world.size),
        "LOCAL_RANK": os.environ.get("LOCAL_RANK", "0"),
        "LOCAL_WORLD_SIZE": os.environ.get("LOCAL_WORLD_SIZE", "1"),
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", "127.0.0.1"),
        "MASTER_PORT": str(int(port.item())),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _same_path(kept: Path) -> Iterator[Path]:
    """A link to a run's folder with the same path for every attempt, though the folder's name has its number.

    Scripts write their own paths into their checkpoints. The link is local to this machine, so an older attempt on
    another machine cannot write through it.
    """
    mine = Path(tempfile.gettempdir()) / f"semray-command-{os.getuid()}"
    with suppress(FileExistsError):
        mine.mkdir(mode=0o700)
    found = mine.lstat()
    if found.st_uid != os.getuid() or not mine.is_dir() or mine.is_symlink():
        raise TrainerError(
            f"{mine}: somebody else's, or no folder\n  accepted: none, or TMPDIR naming another place"
        )
    mine.chmod(0o700)
    kept = kept.resolve()
    link = mine / key_of({"folder": str(kept.parent), "run": kept.name.partition(".")[0]})[:16]
    draft = link.with_name(f"{link.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(kept, target_is_directory=True)
    draft.replace(link)
    try:
        yield link
    finally:
        with suppress(OSError):
            if link.readlink() == kept:
                link.unlink()
