"""Runs a function in several processes that form one gloo group through a file; for tests of the world's size.

The processes are forked from one that has imported what every worker needs and has done nothing else: to import it
again in each of them costs more than most of what they are asked.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

IMPORTED = [
    "torch",
    "torch.distributed",
    "trainers.engine.deep_speed",
    "transformers.models.bert.modeling_bert",
    "trainers.engine.loop",
]


def together(size: int, body: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """Call body(rank, size, folder, *arguments) in `size` fresh processes. AssertionError when one of them fails."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    started = [
        context.Process(target=_joined, args=(rank, size, body, folder, arguments, {**os.environ}), daemon=True)
        for rank in range(size)
    ]
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # children inherit it; they import tests.*
    try:
        for process in started:
            process.start()
    finally:
        del sys.path[0]
    for process in started:
        process.join(timeout=240)
    assert [process.exitcode for process in started] == [0] * size


def _joined(
    rank: int,
    size: int,
    body: Callable[..., None],
    folder: Path,
    arguments: tuple[Any, ...],
    variables: dict[str, str],
) -> None:
    """variables: the environment of who asks; that of the process which imported may be of an earlier test."""
    import torch
    import torch.distributed as dist

    gc.freeze()  # what was imported before the fork is no garbage: to look through it would copy it, too
    os.environ.clear()
    os.environ.update(variables)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), size), rank=rank, world_size=size)
    body(rank, size, folder, *arguments)
    dist.destroy_process_group()
