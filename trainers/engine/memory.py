"""Memory of a training step, kept for the next one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Of glibc's malloc.h: what `mallopt` sets.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
LARGEST_THRESHOLD = 32 * 2**20  # bytes, of MMAP_THRESHOLD; glibc itself goes up to it
MAPPINGS = 65536  # glibc's own bound on MMAP_MAX
# Of oneDNN, which multiplies in bf16 by code that it compiles for every shape: how much of that it keeps, said
# before its first product. The few shapes of `trainers.encoders.cpu_products` fit into this; what has others in
# each step seldom sees one again, and the 1024 that it keeps by itself are memory for nothing
# (`benchmarks/training_throughput.py`).
REMEMBERED = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
# Of cuBLAS, without which its products need not be the same twice. It is looked at once, at the process's first
# product on a card; see `tell_workspace`.
WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def tell_workspace(device: torch.device) -> None:
    """Let cuBLAS hear of its workspace, by a product that nobody needs.

    Some releases of torch (2.11) read it again at every product, by a regular expression, while it is set.
    """
    import torch

    os.environ.update([WORKSPACE])
    one = torch.ones(1, 1, device=device)
    torch.mm(one, one)
    del os.environ[WORKSPACE[0]]


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within, this process keeps what it frees instead of handing it back to the system; afterwards it does.

    Every step asks for the same large tensors. As glibc has it they come from the system each time, page by page
    and filled with zeros: a tenth of a step of MiniLM on a CPU. Does nothing where glibc is not.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(MMAP_MAX, 0)
    libc.mallopt(TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        # glibc moves its thresholds by itself until somebody sets one: here is where it would have ended
        libc.mallopt(MMAP_THRESHOLD, LARGEST_THRESHOLD)
        libc.mallopt(TRIM_THRESHOLD, 2 * LARGEST_THRESHOLD)
        libc.mallopt(MMAP_MAX, MAPPINGS)
        libc.malloc_trim(0)
