"""Connects to Ray: the cluster that RAY_ADDRESS names, or else a local Ray on loopback."""

from __future__ import annotations

import logging
import math
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from corpora.store.errors import first_line
from orchestration.study.errors import StudyError

OBJECT_STORE_BYTES = 100 * 2**20  # lanes exchange runs and summaries, never tensors; Ray's minimum is 75 MiB
KNOCK_SECONDS = 5.0  # wait for a connection to a cluster's address


def named_address() -> str | None:
    """The address in RAY_ADDRESS; None if it is not set or empty."""
    return os.environ.get("RAY_ADDRESS") or None


@contextmanager
def connected(cpus: int) -> Iterator[None]:
    """Connect to Ray for the duration of the block.

    If this process is connected already, that Ray is used and left running. If RAY_ADDRESS names a cluster, as
    inside a cluster's job, that is joined. Otherwise a local Ray of `cpus` CPUs is started, reachable from this
    machine only, and ended with the block. Raises StudyError if Ray cannot be reached or started.
    """
    import ray

    address = named_address()
    if ray.is_initialized():
        yield
    elif address:
        with joined(address):
            yield
    else:
        _keep_stdout_clean()
        try:
            _start(cpus)
        except StudyError:
            raise
        except Exception as error:
            raise StudyError(_no_ray(None, error)) from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Connect to the cluster at an address, "auto" for this machine's. StudyError if none answers there."""
    import ray

    _keep_stdout_clean()
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise StudyError(_no_ray(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError if nothing listens at the address: Ray itself would try for more than ten minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()


def started_in() -> str | None:
    """The working folder for processes on Ray: this one's, as a study's paths are relative to its start.

    None in a Ray job with a `working_dir`, as every process then starts in its own copy of that.
    """
    import ray

    brought = ray.get_runtime_context().runtime_env.get("working_dir")
    return None if brought else os.getcwd()


def go_to(folder: str | None) -> None:
    """Change to this folder, unless None. Raises StudyError, in one line, if the machine has no such folder."""
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        raise StudyError(
            f"{folder}, where the study was started: {error.strerror} on {socket.gethostname()}; "
            "accepted: a folder that all machines share, or `ray job submit --working-dir .`, which takes it along"
        ) from None


@dataclass(frozen=True, kw_only=True)
class RunShare:
    """The resources of one run. memory: in bytes, 0 if it is not limited."""

    cpus: int
    gpus: float = 0.0
    memory: int = 0

    @property
    def words(self) -> str:
        return _amounts({"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory})


def runs_that_fit(share: RunShare) -> int:
    """How many runs of this size the connected Ray has room for at a time."""
    import ray

    free = ray.cluster_resources()
    room = free.get("CPU", 0) // share.cpus
    gpus = free.get("GPU", 0)
    if 0 < share.gpus < 1:  # Ray splits no share between GPUs
        room = min(room, gpus * math.floor(1 / share.gpus + 1e-6))
    elif share.gpus:
        room = min(room, gpus // share.gpus)
    if share.memory:
        room = min(room, free.get("memory", 0) // share.memory)
    return int(room)


def runs_that_fit_here(share: RunShare) -> int:
    """As `runs_that_fit`, of a Ray without GPUs that this machine would start now."""
    room = cores() // share.cpus
    return min(room, free_memory() // share.memory) if share.memory else room


def room_words() -> str:
    """The total and free resources of the connected Ray, in words."""
    import ray

    return f"Ray has {_amounts(ray.cluster_resources())}, of which {_amounts(ray.available_resources())} are free"


def _amounts(held: Mapping[str, float]) -> str:
    counts = {"CPU": held.get("CPU", 0), **({"GPU": held["GPU"]} if held.get("GPU") else {})}
    parts = [f"{count:g} {name}{'s' * (count != 1)}" for name, count in counts.items()]
    if memory := held.get("memory", 0):
        parts.append(f"{memory / 2**30:.1f} GiB")
    return " and ".join(parts)


def temporary_folder() -> Path:
    """Where Ray keeps its sessions and what it spills: not always where Python's own temporary files go."""
    elsewhere = os.environ.get("TMPDIR") if sys.platform.startswith("linux") else None
    return Path(os.environ.get("RAY_TMPDIR") or elsewhere or "/tmp")


def cores() -> int:
    """CPU cores that this process may use, by its affinity mask and its control group's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return allowed
    return allowed if quota == "max" else max(1, min(allowed, int(quota) // int(period)))


def free_memory() -> int:
    """Bytes of memory that a Ray started now would share out: what is free here, and within the control group."""
    import psutil

    free = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # without a limit the file says "max"
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, limit - used)
    return max(free - OBJECT_STORE_BYTES, 0)


def _start(cpus: int) -> None:
    """Start a local Ray that listens on loopback only.

    On Linux Ray 2.60 replaces 127.0.0.1 by the machine's address and then listens on every interface. On systems
    where it supports no clusters it does not; ENABLE_RAY_CLUSTER = False makes it behave so on Linux too.
    """
    import ray
    from ray._private import ray_constants

    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False
    private_token()
    with _without_idle_parts(), _deaf_to_hangups():
        ray.init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            _system_config={"prestart_worker_first_driver": False},  # lanes want an environment of their own
        )


@contextmanager
def _without_idle_parts() -> Iterator[None]:
    """Keep Ray from starting processes that a local Ray does not need and would wait for.

    These are the dashboard's server, the autoscaler's monitor, and the log monitor.
    """
    from ray._private.node import Node

    def no_process(node: Node, **_: object) -> None:
        node._webui_url = ""

    usual = {part: getattr(Node, part) for part in ("start_api_server", "start_monitor", "start_log_monitor")}
    for part in usual:
        setattr(Node, part, no_process)
    try:
        yield
    finally:
        for part, start in usual.items():
            setattr(Node, part, start)


@contextmanager
def _deaf_to_hangups() -> Iterator[None]:
    """Within, what starts does not hear SIGHUP, which a closing terminal sends to all: the driver ends its Ray."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def private_token() -> Path:
    """The file with this user's token for Ray, readable by nobody else; it is made if missing.

    Ray 2.60 would make it readable for all users of the machine, any of whom could then run code as this user.
    Raises StudyError if the home folder cannot be written.
    """
    place = Path.home() / ".ray" / "auth_token"
    try:
        _make_private(place)
    except OSError as error:
        raise StudyError(
            f"{place}, the key to a Ray of this machine's own: {error.strerror}\n"
            f"  accepted: HOME naming a folder that may be written and has room"
        ) from None
    return place


def _make_private(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        handle, draft = tempfile.mkstemp(dir=place.parent)  # mode 600
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32))
        with suppress(FileExistsError):
            os.link(draft, place)  # atomic: of several processes the first succeeds
        os.unlink(draft)
    if place.stat().st_mode & 0o077:
        place.chmod(0o600)


def _keep_stdout_clean() -> None:
    """Stop Ray from printing reports of its daemons on stdout, where programs read results.

    The reports are about dead processes, which the errors of lanes report too.
    """
    from ray._private import worker

    worker.print_to_stdstream = lambda data, ignore_prefix: None


def _no_ray(address: str | None, error: Exception) -> str:
    if address:
        return (
            f"Ray at {address}: nothing answers there ({first_line(error)})\n"
            f"  accepted: the address of a running cluster, or no RAY_ADDRESS for a Ray of this machine's own"
        )
    return (
        f"Ray did not start on this machine ({first_line(error)})\n"
        f"  accepted: room for its processes and files; `semray doctor` says what is missing, and Ray's own words "
        f"are under {temporary_folder()}/ray/session_latest/logs"
    )
