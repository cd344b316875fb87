"""What a run was made with: versions, machine, device. Written beside every result as env.json."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = (
    "semray", "torch", "transformers", "deepspeed", "ray", "sentence-transformers", "safetensors", "datasets",
    "numpy", "scipy", "scikit-learn", "nltk", "spacy", "pyarrow",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Library versions, Python, platform, processor, device and threads of this process, as plain JSON types.

    device and threads are None when torch was not imported: then nothing was computed with it.
    No host name, user or environment variable: the record may be published.
    """
    torch = sys.modules.get("torch")
    device = threads = None
    if torch is not None:
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        threads = torch.get_num_threads()
    return {**_machine(), "device": device, "threads": threads}


@cache
def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name)) is not None},
    }


def cpu_model() -> str:
    """The processor's name as Linux gives it, else what the platform says."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, platform.machine())


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
