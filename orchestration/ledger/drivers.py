"""Who drives a study: one process at a time, known to the ledger by host, process id and start time."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

import psutil

from orchestration.ledger.storage import Storage, away, reached
from orchestration.study.errors import StudyError

BEAT_SECONDS = 5.0  # how often a driver says that it lives
STALE_SECONDS = 60.0  # a driver on another host that said nothing for so long is taken for dead
RELEASED = 0.0  # the beat of a driver that has let go


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
    StudyError too when the ledger cannot be reached.
    """
    driver = this_process(study)
    with reached(storage.url):
        place = _claim(storage, driver)
    done = threading.Event()
    beats = threading.Thread(target=_beat, args=(storage, place, driver, done), name="driver-beat", daemon=True)
    beats.start()
    try:
        yield driver
    finally:
        done.set()
        beats.join()
        with suppress(*away()):  # what ended the block is the better news; a dead process holds nothing
            storage.write(place, _lock(driver, RELEASED))  # not removed: the next driver counts on from it


def is_driving(storage: Storage, driver: Driver) -> bool:
    """Whether this very process still holds its study and lives."""
    held = _holder(storage, driver.study)
    return held is not None and held[1] == driver and _lives(*held[1:])


def require_hold(storage: Storage, driver: Driver) -> None:
    """Raises StudyError when another process has taken the driver's study over.

    A process that was paused, on a host that slept, cannot know of it before it looks.
    """
    held = _holder(storage, driver.study)
    if held is not None and held[1] != driver:
        raise StudyError(
            f"ledger {storage.url}: the study {driver.study} was taken over by {_named(held[1])}, since this one "
            f"gave no sign of life for {STALE_SECONDS:.0f} s\n"
            f"  accepted: leave it to that one, or give the same command again after its end; what was finished "
            f"here is kept"
        )


def _claim(storage: Storage, driver: Driver) -> str:
    """Create the next number in the study's folder: of several that find a stale lock, one succeeds.

    Numbers only grow: the newest lock is never removed, and who holds a lower one does not hold the study. So a
    process that was slow, and creates a number that others have used and left behind, finds that out by looking
    once more.
    """
    folder = _folder(driver.study)
    while True:
        held = _holder(storage, driver.study)
        if held is not None and _lives(*held[1:]):
            raise StudyError(_refusal(storage, held[1]))
        number = held[0] + 1 if held else 1
        try:
            storage.create(f"{folder}/{number}", _lock(driver, time.time()))
        except FileExistsError:
            continue
        numbers = _numbers(storage, driver.study)
        for older in (other for other in numbers if other < max(numbers)):
            storage.remove(f"{folder}/{older}")
        if max(numbers) == number:
            return f"{folder}/{number}"


def _holder(storage: Storage, study: str) -> tuple[int, Driver, float] | None:
    """The newest lock: its number, its driver, and when that last said it lives. None before the first."""
    while numbers := _numbers(storage, study):
        try:
            lock = json.loads(storage.read(f"{_folder(study)}/{max(numbers)}"))
        except FileNotFoundError:  # a newer one has taken its place since
            continue
        return max(numbers), Driver.from_dict(lock), lock["beat"]
    return None


def _numbers(storage: Storage, study: str) -> list[int]:
    return [int(name) for name in storage.children(_folder(study)) if name.isdecimal()]


def _lives(driver: Driver, beat: float) -> bool:
    if beat == RELEASED:
        return False
    if driver.host != socket.gethostname():
        return time.time() - beat < STALE_SECONDS
    try:
        return abs(psutil.Process(driver.pid).create_time() - driver.started) < 1.0
    except psutil.NoSuchProcess:
        return False


def _beat(storage: Storage, place: str, driver: Driver, done: threading.Event) -> None:
    """Say that the driver lives, until it is done. A store that is away for a while is told of once."""
    said = False
    while not done.wait(BEAT_SECONDS):
        try:
            storage.write(place, _lock(driver, time.time()))
        except away() as error:
            if not said:
                print(f"ledger {storage.url} is away, trying on: {error}", file=sys.stderr, flush=True)
            said = True


def _lock(driver: Driver, beat: float) -> bytes:
    return json.dumps({**driver.to_dict(), "beat": beat}).encode()


def _folder(study: str) -> str:
    return f".drivers/{quote(study, safe='')}"


def _refusal(storage: Storage, holder: Driver) -> str:
    return (
        f"ledger {storage.url}: the study {holder.study} is being run by {_named(holder)}\n"
        f"  accepted: one run of a study at a time; wait for it, stop it, or choose another ledger.\n"
        f"  If that host is gone, try again {STALE_SECONDS:.0f} s after its end"
    )


def _named(driver: Driver) -> str:
    here = os.getpid() == driver.pid and driver.host == socket.gethostname()
    return "this process itself" if here else f"process {driver.pid} on {driver.host}"
