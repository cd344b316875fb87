"""Settings of the process that trains, and its process group."""

from __future__ import annotations

import gc
import os
import random
import sys
import warnings

import numpy as np
import torch
import torch.distributed as dist

from trainers.engine.memory import ONEDNN_CACHE, set_cublas_workspace
from trainers.engine.streams import number
from trainers.engine.world import World


def reset_process(seed: int, world: World) -> None:
    """Reset the process's global settings and random numbers, so that earlier runs in it change nothing."""
    gc.collect()  # frees engines of earlier runs
    device = torch.device(world.device)
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(device.index or 0)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if world.threads > 1 or world.on_card else "false"
    os.environ.setdefault(*ONEDNN_CACHE)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)  # refuses a device without an index
        set_cublas_workspace(device)
    torch.set_num_threads(world.threads)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True, warn_only=device.type == "cuda")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # every new tensor would be filled with NaN
    random.seed(number(seed, "process"))
    np.random.seed(number(seed, "process") % 2**32)  # noqa: NPY002 - for libraries that draw from it
    torch.manual_seed(number(seed, "process"))


def join_process_group(world: World) -> None:
    """Make the process group of a single worker, which DeepSpeed needs too; it uses memory and loopback only."""
    if dist.is_initialized():
        assert dist.get_world_size() == world.size, "the process group is not the world's"
        return
    assert world.size == 1, "a world of several workers comes with its process group"
    name = "GLOO_SOCKET_IFNAME"
    before = os.environ.get(name)
    os.environ[name] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        backend = "nccl" if torch.device(world.device).type == "cuda" else "gloo"
        # No device_id: with one, torch derives DeepSpeed's group from this one by ncclCommSplit, which fails for
        # one worker on some machines (DeepSpeed #8248). Without, it takes the card that is set.
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        warnings.filterwarnings("ignore", r"barrier\(\): using the device under current context")
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
