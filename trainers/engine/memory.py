"""Memory of a training step, kept for the next one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Parameters of `mallopt`, from glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
LARGEST_THRESHOLD = 32 * 2**20  # bytes: the largest MMAP_THRESHOLD that glibc chooses by itself
MAPPINGS = 65536  # glibc's default of MMAP_MAX
# oneDNN compiles code for every shape that it multiplies in bf16, and keeps so many of these; set it before the
# first product. The few shapes of `trainers.encoders.cpu_products` fit. Models with new shapes in each step seldom
# see one again, so that oneDNN's default of 1024 only costs memory (`benchmarks/training_throughput.py`).
ONEDNN_CACHE = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
# Makes cuBLAS's products deterministic. It is read once, at the process's first product on a card.
WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def set_cublas_workspace(device: torch.device) -> None:
    """Have cuBLAS read WORKSPACE by a small product, then unset the variable.

    While it is set, some releases of torch (2.11) parse it again at every product, with a regular expression.
    """
    import torch

    os.environ.update([WORKSPACE])
    one = torch.ones(1, 1, device=device)
    torch.mm(one, one)
    del os.environ[WORKSPACE[0]]


@contextmanager
def keeping_memory() -> Iterator[None]:
    """Keep freed memory in this process instead of returning it to the system, until the block ends.

    Every step allocates the same large tensors. By default glibc fetches them from the system each time, page by
    page and filled with zeros: a tenth of a step of MiniLM on a CPU. Without glibc it does nothing.
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
        # setting a threshold stops glibc from adapting it, so set what it would have adapted to
        libc.mallopt(MMAP_THRESHOLD, LARGEST_THRESHOLD)
        libc.mallopt(TRIM_THRESHOLD, 2 * LARGEST_THRESHOLD)
        libc.mallopt(MMAP_MAX, MAPPINGS)
        libc.malloc_trim(0)
