"""The lock of a study: one process at a time drives it, identified by host, process id and start time."""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from orchestration.ledger.away import away, words_of
from orchestration.ledger.notes import NUMBER, damaged, note_if_there
from orchestration.ledger.storage import Storage, reached
from orchestration.study.errors import StudyError

BEAT_SECONDS = 5.0  # how often a driver renews its lock with the time (a beat)
STALE_SECONDS = 60.0  # a driver on another machine without a beat for so long is taken for dead
LOOKED_AT_BEATS = 2.5  # how many beats a lock is watched that seems stale, or whose clock seems wrong
RELEASED = 0.0  # the beat of a lock that its driver has released
REMEDY = "a driver's lock; delete the file once nobody runs the study"

# Of drivers that were watched, by ledger: the seconds by which a living one's clock is behind; a dead one's last
# beat.
_clocks: dict[tuple[str, Driver], float] = {}
_last_beats: dict[tuple[str, Driver], float] = {}


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A process that drives a study. started, in seconds since 1970, tells apart two processes of one id.

    space: the boot and container within which its process id is unique, as containers may share a host's name; ""
    if unknown.
    """

    study: str
    host: str
    pid: int
    started: float
    space: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Driver:
        return Driver(
            study=str(fields["study"]),
            host=str(fields["host"]),
            pid=int(fields["pid"]),
            started=float(fields["started"]),
            space=str(fields.get("space", "")),
        )


def this_process(study: str) -> Driver:
    """The running process as the driver of a study."""
    process = psutil.Process()
    started = process.create_time()
    return Driver(study=study, host=socket.gethostname(), pid=process.pid, started=started, space=_space())


@contextmanager
def driving(storage: Storage, study: str) -> Iterator[Driver]:
    """Hold the study in this ledger, so that nobody else drives it until the block ends.

    Raises StudyError, naming process and host, while another living process holds it; also if the ledger cannot be
    reached, or the lock is damaged. The lock of a dead process of this machine is taken over at once. A lock of
    another machine is taken over after `STALE_SECONDS` without a beat, and, since clocks differ, after watching it
    for some beats. A lock of this machine whose process id lives with another start time is watched too: the id
    was reused, or the clock was set.
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
        beats.join(STALE_SECONDS)  # if the store hangs for longer, the lock is stale anyway
        with suppress(*away()):  # must not hide an error of the block; an unreleased lock becomes stale
            storage.write(place, _lock(driver, RELEASED))  # not removed: the next driver's number follows it


def is_driving(storage: Storage, driver: Driver) -> bool:
    """True if this process still holds its study and is alive, as far as its clock can be trusted."""
    held = holder(storage, driver.study)
    return held is not None and held[1] == driver and _alive(storage, *held)


def require_hold(storage: Storage, driver: Driver) -> None:
    """Raise StudyError if another process has taken the driver's study over.

    A process that was paused, as on a sleeping host, learns of it only by this check.
    """
    held = holder(storage, driver.study)
    if held is not None and held[1] != driver:
        raise StudyError(
            f"ledger {storage.url}: the study {driver.study} was taken over by {_named(held[1])}, since this one "
            f"gave no sign of life for {STALE_SECONDS:.0f} s\n"
            f"  accepted: leave it to that one, or give the same command again after its end; what was finished "
            f"here is kept"
        )


def _claim(storage: Storage, driver: Driver) -> str:
    """Create the next numbered lock in the study's folder; of several processes that try, one succeeds.

    Numbers only grow: the newest lock is never removed, and only its holder holds the study. A slow process may
    create a number that others have used and deleted; it finds a newer one when it lists the folder again.
    """
    folder = _folder(driver.study)
    while True:
        held = holder(storage, driver.study)
        if held is not None and _alive(storage, *held):
            raise StudyError(_refusal(storage, *held[1:]))
        number, now = held[0] + 1 if held else 1, time.time()
        place, lock = f"{folder}/{number}", _lock(driver, now)
        try:
            storage.create(place, lock)
        except FileExistsError:
            if holder(storage, driver.study) != (number, driver, now):  # if equal, our request had succeeded
                continue
        numbers = {number, *_numbers(storage, driver.study)}  # some stores list a file late
        for older in (other for other in numbers if other < max(numbers)):
            storage.unlink(f"{folder}/{older}")
        if max(numbers) == number:
            _require_refusal(storage, place, lock)
            return place


def _require_refusal(storage: Storage, place: str, lock: bytes) -> None:
    """Raise StudyError if the store lets `create` replace an existing file."""
    with suppress(FileExistsError):
        storage.create(place, lock, durable=False)
        raise StudyError(
            f"ledger {storage.url}: the store does not refuse a second upload of one name: two drivers would undo "
            f"each other's work\n  accepted: a store of conditional writes (`If-None-Match: *`), such as S3, or a "
            f"folder"
        )


def holder(storage: Storage, study: str) -> tuple[int, Driver, float] | None:
    """The newest lock of a study: its number, its driver, and the driver's last beat; None before the first.

    Raises LedgerError if it is damaged.
    """
    missing = 0
    while (newest := max(_numbers(storage, study), default=0)) != missing:
        held = note_if_there(storage, f"{_folder(study)}/{newest}", REMEDY, _held)
        if held is not None:
            return newest, *held
        missing = newest  # probably deleted by a newer lock's driver: list again
    if missing:
        raise damaged(storage, f"{_folder(study)}/{missing}", "it is no file", REMEDY)
    return None


def _held(lock: Mapping[str, Any]) -> tuple[Driver, float]:
    driver, beat = Driver.from_dict(lock), float(lock["beat"])
    if driver.pid < 1 or not math.isfinite(beat):
        raise ValueError(f"pid {driver.pid}, beat {beat}")
    return driver, beat


def _numbers(storage: Storage, study: str) -> list[int]:
    return [int(name) for name in storage.children(_folder(study)) if NUMBER.fullmatch(name)]


def _alive(storage: Storage, number: int, driver: Driver, beat: float) -> bool:
    """True if the driver that holds a lock is alive; its lock is watched if the last beat does not tell."""
    if _last_beats.get((storage.url, driver)) == beat:
        return False
    lives = _lives(driver, beat, _clocks.get((storage.url, driver)))
    return _beats(storage, number, driver, beat) if lives is None else lives


def _lives(driver: Driver, beat: float, behind: float | None) -> bool | None:
    """True or False if the driver is known to be alive or dead, None if unknown.

    Unknown: the last beat is long ago or in the future; or a process of this machine has the id with another start
    time. behind: the seconds by which its clock is behind this one; None before it was watched.
    """
    if beat == RELEASED:
        return False
    if _is_near(driver):
        try:
            process = psutil.Process(driver.pid)
            if process.status() == psutil.STATUS_ZOMBIE:  # dead, but not yet waited for by its parent
                return False
            if abs(process.create_time() - driver.started) < 1.0:
                return True
        except psutil.NoSuchProcess:
            return False
        if behind is None:  # the clock was set, or the id was reused
            return None
    return True if abs(time.time() - beat - (behind or 0.0)) < STALE_SECONDS else None


def _beats(storage: Storage, number: int, driver: Driver, beat: float) -> bool:
    """Watch a lock for some beats and return whether a new one comes, whatever its clock says."""
    seconds = LOOKED_AT_BEATS * BEAT_SECONDS
    apart = abs(time.time() - beat)
    where = "before" if beat < time.time() else "after"
    print(
        f"ledger {storage.url}: the last sign of life of {_named(driver)} is {apart:.0f} s {where} this clock's "
        f"time, or it began at another; watching it for {seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(seconds / 10)
        held = holder(storage, driver.study)
        if held is None or held[:2] != (number, driver) or held[2] == RELEASED:
            return False  # another driver's by now: the caller reads the newest lock again
        if held[2] != beat:
            _clocks[storage.url, driver] = time.time() - held[2]
            return True
    _last_beats[storage.url, driver] = beat
    return False


def _is_near(driver: Driver) -> bool:
    """True if its process id can be looked up from this process."""
    return (driver.host, driver.space) == (socket.gethostname(), _space())


@cache
def _space() -> str:
    """The scope within which this process's id is unique: the boot of the kernel, and the container.

    On other systems than Linux no containers share a kernel, and the host's name suffices.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "the host's"


def _beat(storage: Storage, place: str, driver: Driver, done: threading.Event) -> None:
    """Renew the lock until `done` is set. The first failure of the store is printed."""
    reported = False
    while not done.wait(BEAT_SECONDS):
        try:
            storage.write(place, _lock(driver, time.time()))
        except away() as error:
            if not reported:
                print(f"ledger {storage.url} is away, trying on: {words_of(error)}", file=sys.stderr, flush=True)
            reported = True


def _lock(driver: Driver, beat: float) -> bytes:
    return json.dumps({**driver.to_dict(), "beat": beat}).encode()


def _folder(study: str) -> str:
    return f".drivers/{quote(study, safe='')}"


def _refusal(storage: Storage, holder: Driver, beat: float) -> str:
    apart = beat - time.time()
    here = _is_near(holder)  # its clock is ours, so that a difference only means silence
    clock = f" (its clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} this one)"
    return (
        f"ledger {storage.url}: the study {holder.study} is being run by {_named(holder)}"
        f"{clock if abs(apart) > STALE_SECONDS and not here else ''}\n"
        "  accepted: one run of a study at a time; wait for it, stop it, or choose another ledger"
        + ("" if here else f".\n  If that host is gone, try again {STALE_SECONDS:.0f} s after its end")
    )


def _named(driver: Driver) -> str:
    here = os.getpid() == driver.pid and driver.host == socket.gethostname()
    return "this process itself" if here else f"process {driver.pid} on {driver.host}"
