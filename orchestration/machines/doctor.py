"""Checks whether this machine can run a study. Every check says what it found and how to mend it."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import redirect_stdout, suppress
from http.client import HTTPException, InvalidURL
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

from orchestration.machines.node_checks import GIB, Check, listed_cards, node_checks

ANSWER_SECONDS = 5.0  # for an MLflow server
TRAIN = "pip install 'semray[train]'; in a clone: make environment"
GPU_TORCH = "install a torch that is built for GPUs; in a clone: SEMRAY_TORCH=gpu make environment, from scratch"


def checks(ledger: str) -> list[Check]:
    """All checks, in the order in which a study would meet them."""
    imported = [_python(), _torch(), *(_importable(name) for name in ("deepspeed", "ray", "mlflow"))]
    return [*imported, *node_checks(ledger), _cluster_named(), tracking(ledger)]


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check(name="python", ok=sys.version_info >= (3, 11), found=version, mend="install Python 3.11 or newer")


def _torch() -> Check:
    import torch

    from trainers.engine.precision import fast_at_bf16

    listed = listed_cards()
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        card = f"{torch.cuda.get_device_name()}, {free / GIB:.0f} of {total / GIB:.0f} GiB free"
        device, kind = f"{card}{_busy()}", "cuda"
    elif isinstance(listed, int) and listed:
        found = f"{torch.__version__} uses none of the {listed} GPUs"
        return Check(name="torch", ok=False, found=found, mend=GPU_TORCH)
    else:
        device, kind = f"CPU, {os.cpu_count()} cores", "cpu"
    found = f"{torch.__version__} on {device}, trains in {'bf16' if fast_at_bf16(kind) else 'fp32'}"
    return Check(name="torch", ok=True, found=found)


def _busy() -> str:
    """The card's load in words. This needs the extra `gpu`, as does the energy that runs record."""
    import torch

    try:
        import pynvml
    except ImportError:
        return ", load and energy not told: pip install 'semray[gpu]'"
    with suppress(RuntimeError, pynvml.NVMLError):  # an old driver or a part of a card (MIG) has no load
        return f", {torch.cuda.utilization()} % busy"
    return ""


def _importable(name: str) -> Check:
    from importlib import import_module
    from importlib.metadata import version

    try:
        with redirect_stdout(sys.stderr):  # DeepSpeed logs to stdout
            import_module(name)
        return Check(name=name, ok=True, found=version(name))
    except ImportError as error:
        return Check(name=name, ok=False, found=f"cannot be imported ({error})", mend=TRAIN)


def _cluster_named() -> Check:
    """Check that a cluster answers if RAY_ADDRESS is set, as every study of this shell would look for it."""
    from orchestration.lanes.cluster import connected, named_address
    from orchestration.study.errors import StudyError

    address = named_address()
    if address is None:
        return Check(name="RAY_ADDRESS", ok=True, found="not set: studies run on this machine")
    try:
        with connected(1):
            return Check(name="RAY_ADDRESS", ok=True, found=address)
    except StudyError as error:
        return Check(name="RAY_ADDRESS", ok=False, found=f"{address}: nothing answers", mend=str(error))


def tracking(ledger: str) -> Check:
    """MLflow, where `semray run` would write: a server that answers, or a database that can be opened."""
    from orchestration.tracking.reaching import database_of, default_uri, shown

    uri = default_uri(ledger)
    place = shown(uri)
    mend = "start it, or unset MLFLOW_TRACKING_URI; a study runs without it and `semray sync` catches up"
    try:
        if uri.startswith("http"):
            _answering(uri)
        elif database := database_of(uri):
            _readable(str(database))
    except (OSError, HTTPException, sqlite3.Error) as error:  # HTTPException: another kind of server
        return Check(name="MLflow", ok=False, found=f"{place}: {error}".strip(), mend=mend)
    return Check(name="MLflow", ok=True, found=place)


def _answering(uri: str) -> None:
    """Raise OSError or HTTPException, with no password in the text, if no server answers at a URI."""
    try:
        parts = urlsplit(uri)
        host, path = parts.netloc.rpartition("@")[2], quote(f"{parts.path.rstrip('/')}/health", safe="/%@:")
        with urlopen(f"{parts.scheme}://{host}{path}", timeout=ANSWER_SECONDS) as answer:
            answer.read()  # this page needs no password
    except (ValueError, InvalidURL):
        raise OSError("no address of a host and a port") from None


def _readable(path: str) -> None:
    """Raise sqlite3.Error or OSError for a database that is damaged or may not be written."""
    if not os.path.exists(path):
        return
    if not os.access(path, os.W_OK):
        raise PermissionError("may not be written")
    database = sqlite3.connect(path, timeout=ANSWER_SECONDS)
    try:
        database.execute("select count(*) from sqlite_master").fetchone()
    finally:
        database.close()
