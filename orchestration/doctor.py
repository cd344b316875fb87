"""Is this machine able to run a study? Every check answers, and says what mends it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GIB = 1024**3
ROOM_FOR_A_STUDY = 5 * GIB  # sixteen fine-tuned MiniLM of 90 MB, checkpoints and MLflow, with room to spare


@dataclass(frozen=True, kw_only=True)
class Check:
    """One answer: what was looked at, whether it will do, what was found, and what mends it."""

    name: str
    ok: bool
    found: str
    mend: str = ""


def checks(ledger: str) -> list[Check]:
    """All checks, in the order in which a study would meet them. An encoder found nowhere here is fetched."""
    return [_python(), _torch(), _deepspeed(), _ray(), _mlflow(), _wordnet(), _encoder(), _disk(ledger)]


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check(name="python", ok=sys.version_info >= (3, 11), found=version, mend="install Python 3.11 or newer")


def _torch() -> Check:
    import torch

    from trainers.engine import best_precision

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        device, kind = f"{torch.cuda.get_device_name()}, {free / GIB:.0f} of {total / GIB:.0f} GiB free", "cuda"
        with suppress(ModuleNotFoundError):  # the extra `gpu`
            device += f", {torch.cuda.utilization()} % busy"
    else:
        device, kind = f"CPU, {os.cpu_count()} cores", "cpu"
    found = f"{torch.__version__} on {device}, trains in {best_precision(kind)}"
    return Check(name="torch", ok=True, found=found)


def _importable(name: str, mend: str) -> Check:
    from importlib import import_module
    from importlib.metadata import version

    try:
        import_module(name)
        return Check(name=name, ok=True, found=version(name))
    except ImportError as error:
        return Check(name=name, ok=False, found=f"cannot be imported ({error})", mend=mend)


def _deepspeed() -> Check:
    return _importable("deepspeed", "make environment")


def _ray() -> Check:
    return _importable("ray", "make environment")


def _mlflow() -> Check:
    return _importable("mlflow", "make environment")


def _located(name: str, locate: Callable[[], Path]) -> Check:
    """A part that is found or says itself what mends it."""
    from corpora.errors import CorpusError
    from trainers.backbones import BackboneError

    try:
        return Check(name=name, ok=True, found=str(locate()))
    except (CorpusError, BackboneError) as error:
        return Check(name=name, ok=False, found="not found", mend=str(error))


def _wordnet() -> Check:
    from corpora.wordnet_files import locate

    return _located("WordNet 3.0", lambda: locate().place)


def _encoder() -> Check:
    from trainers.backbones import resolve_backbone

    return _located("all-MiniLM-L6-v2", lambda: resolve_backbone("all-MiniLM-L6-v2"))


def _disk(ledger: str) -> Check:
    if "://" in ledger:
        return Check(name="ledger", ok=True, found=f"{ledger} (an object store)")
    folder = Path(ledger).absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    return Check(
        name="ledger",
        ok=writable and free > ROOM_FOR_A_STUDY,
        found=f"{ledger}: {free / GIB:.0f} GiB free" + ("" if writable else ", not writable"),
        mend=f"give --ledger a writable folder with {ROOM_FOR_A_STUDY / GIB:.0f} GiB",
    )
