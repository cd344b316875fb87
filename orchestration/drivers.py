"""Who drives a study: one process at a time, known to the ledger by host, process id and start time."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

import psutil

from orchestration.errors import StudyError
from orchestration.storage import Storage

BEAT_SECONDS = 5.0  # how often a driver says that it lives
STALE_SECONDS = 60.0  # a driver on another host that said nothing for so long is taken for dead


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A process that drives a study. started, in seconds since 1970, tells two processes of one id apart."""

    study: str
    host: str
    pid: int
    started: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Driver:
        return Driver(**{name: fields[name] for name in ("study", "host", "pid", "started")})


def this_process(study: str) -> Driver:
    """The running process as the driver of a study."""
    process = psutil.Process()
    return Driver(study=study, host=socket.gethostname(), pid=process.pid, started=process.create_time())


@contextmanager
def driving(storage: Storage, study: str) -> Iterator[Driver]:
    """Hold the study in this ledger: nobody else drives it until the block ends.

    Raises StudyError, naming process and host, while another living process holds it. The lock of a dead process
    on this host is taken over at once, of another host after `STALE_SECONDS` without a sign of life.
    """
    driver = this_process(study)
    place = _claim(storage, driver)
    done = threading.Event()
    beats = threading.Thread(target=_beat, args=(storage, place, driver, done), name="driver-beat", daemon=True)
    beats.start()
    try:
        yield driver
    finally:
        done.set()
        beats.join()
        storage.remove(place)


def is_driving(storage: Storage, driver: Driver) -> bool:
    """Whether this very process still holds its study and lives."""
    held = _holder(storage, driver.study)
    return held is not None and held[1] == driver and _lives(*held[1:])


def _claim(storage: Storage, driver: Driver) -> str:
    """Create the next number in the study's folder: of several that find a stale lock, one succeeds."""
    while True:
        held = _holder(storage, driver.study)
        if held is not None and _lives(*held[1:]):
            raise StudyError(_refusal(storage, held[1]))
        place = f"{_folder(driver.study)}/{held[0] + 1 if held else 1}"
        try:
            storage.create(place, _lock(driver))
        except FileExistsError:
            continue
        if held is not None:
            storage.remove(f"{_folder(driver.study)}/{held[0]}")
        return place


def _holder(storage: Storage, study: str) -> tuple[int, Driver, float] | None:
    """The newest lock: its number, its driver, and when that last said it lives."""
    numbers = [int(name) for name in storage.children(_folder(study))]
    if not numbers:
        return None
    try:
        lock = json.loads(storage.read(f"{_folder(study)}/{max(numbers)}"))
    except FileNotFoundError:  # released since
        return None
    return max(numbers), Driver.from_dict(lock), lock["beat"]


def _lives(driver: Driver, beat: float) -> bool:
    if driver.host != socket.gethostname():
        return time.time() - beat < STALE_SECONDS
    try:
        return abs(psutil.Process(driver.pid).create_time() - driver.started) < 1.0
    except psutil.NoSuchProcess:
        return False


def _beat(storage: Storage, place: str, driver: Driver, done: threading.Event) -> None:
    while not done.wait(BEAT_SECONDS):
        with suppress(OSError):  # a store that is away for a while: the next beat may reach it
            storage.write(place, _lock(driver))


def _lock(driver: Driver) -> bytes:
    return json.dumps({**driver.to_dict(), "beat": time.time()}).encode()


def _folder(study: str) -> str:
    return f".drivers/{quote(study, safe='')}"


def _refusal(storage: Storage, holder: Driver) -> str:
    here = os.getpid() == holder.pid and holder.host == socket.gethostname()
    who = "this process itself" if here else f"process {holder.pid} on {holder.host}"
    return (
        f"ledger {storage.url}: the study {holder.study} is being run by {who}\n"
        f"  accepted: one run of a study at a time; wait for it, stop it, or choose another ledger.\n"
        f"  If that host is gone, try again {STALE_SECONDS:.0f} s after its end"
    )
