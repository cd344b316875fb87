"""Who drives a study: one process at a time, known to the ledger by host, process id and start time."""

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

BEAT_SECONDS = 5.0  # how often a driver says that it lives
STALE_SECONDS = 60.0  # a driver out of our sight that said nothing for so long is taken for dead
LOOKED_AT_BEATS = 2.5  # how long a lock is watched that seems stale, or is of a clock that cannot be right
RELEASED = 0.0  # the beat of a driver that has let go
REMEDY = "a driver's lock; delete the file once nobody runs the study"

# Of drivers that were watched, by ledger: the seconds by which their clock is behind, or the last beat there was.
_clocks: dict[tuple[str, Driver], float] = {}
_last_beats: dict[tuple[str, Driver], float] = {}


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A process that drives a study. started, in seconds since 1970, tells two processes of one id apart.

    space: where its process id means something, "" where that is not known: containers may share a host's name.
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
    """Hold the study in this ledger: nobody else drives it until the block ends.

    Raises StudyError, naming process and host, while another living process holds it. The lock of a dead process
    that was of this machine's own is taken over at once, any other after `STALE_SECONDS` without a sign of life;
    and after a look at whether it gives one, since clocks differ. So is one here whose process id lives and began
    at another time: it was given again, or the clock was set. StudyError too when the ledger cannot be reached, or
    the lock is damaged.
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
        beats.join(STALE_SECONDS)  # a store that hangs keeps it from nothing else: the lock is stale by then
        with suppress(*away()):  # what ended the block is the better news; a dead process holds nothing
            storage.write(place, _lock(driver, RELEASED))  # not removed: the next driver counts on from it


def is_driving(storage: Storage, driver: Driver) -> bool:
    """Whether this very process still holds its study and lives, as far as its clock can be believed."""
    held = holder(storage, driver.study)
    return held is not None and held[1] == driver and _alive(storage, *held)


def require_hold(storage: Storage, driver: Driver) -> None:
    """Raises StudyError when another process has taken the driver's study over.

    A process that was paused, on a host that slept, cannot know of it before it looks.
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
    """Create the next number in the study's folder: of several that find a stale lock, one succeeds.

    Numbers only grow: the newest lock is never removed, and who holds a lower one does not hold the study. So a
    process that was slow, and creates a number that others have used and left behind, finds that out by looking
    once more.
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
            if holder(storage, driver.study) != (number, driver, now):  # else the answer to it was lost
                continue
        numbers = _numbers(storage, driver.study)
        for older in (other for other in numbers if other < max(numbers)):
            storage.unlink(f"{folder}/{older}")
        if max(numbers) == number:
            _require_refusal(storage, place, lock)
            return place


def _require_refusal(storage: Storage, place: str, lock: bytes) -> None:
    """StudyError for a store that puts a file in place of another, when it is told that there may be none."""
    with suppress(FileExistsError):
        storage.create(place, lock, durable=False)
        raise StudyError(
            f"ledger {storage.url}: the store does not refuse a second upload of one name: two drivers would undo "
            f"each other's work\n  accepted: a store of conditional writes (`If-None-Match: *`), such as S3, or a "
            f"folder"
        )


def holder(storage: Storage, study: str) -> tuple[int, Driver, float] | None:
    """The newest lock of a study: its number, its driver, and when that last said it lives. None before the first.

    LedgerError for one that is damaged.
    """
    missing = 0
    while (newest := max(_numbers(storage, study), default=0)) != missing:
        held = note_if_there(storage, f"{_folder(study)}/{newest}", REMEDY, _held)
        if held is not None:
            return newest, *held
        missing = newest  # a newer one has taken its place since
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
    """Whether the driver that holds a lock lives. It is watched where its last beat does not tell."""
    if _last_beats.get((storage.url, driver)) == beat:
        return False
    lives = _lives(driver, beat, _clocks.get((storage.url, driver)))
    return _beats(storage, number, driver, beat) if lives is None else lives


def _lives(driver: Driver, beat: float, behind: float | None) -> bool | None:
    """Whether a driver lives. behind: so many seconds is its clock behind this one; None before it was watched.

    None where that does not tell: a beat long ago, or ahead of this clock; here, another start than the lock has.
    """
    if beat == RELEASED:
        return False
    if _is_near(driver):
        try:
            process = psutil.Process(driver.pid)
            if process.status() == psutil.STATUS_ZOMBIE:  # killed, and nobody has asked yet what became of it
                return False
            if abs(process.create_time() - driver.started) < 1.0:
                return True
        except psutil.NoSuchProcess:
            return False
        if behind is None:  # the clock was set, or another process has its number by now
            return None
    return True if abs(time.time() - beat - (behind or 0.0)) < STALE_SECONDS else None


def _beats(storage: Storage, number: int, driver: Driver, beat: float) -> bool:
    """Watch a lock for some beats: whatever its driver's clock says, one that lives writes another time."""
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
            return False  # somebody else's by now: the caller looks again
        if held[2] != beat:
            _clocks[storage.url, driver] = time.time() - held[2]
            return True
    _last_beats[storage.url, driver] = beat
    return False


def _is_near(driver: Driver) -> bool:
    """Whether its process id means something to this process."""
    return (driver.host, driver.space) == (socket.gethostname(), _space())


@cache
def _space() -> str:
    """Where this process's id means something: this boot of this kernel, and the container in it.

    Off Linux there are no containers that share a kernel, and the host's name says it all.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "the host's"


def _beat(storage: Storage, place: str, driver: Driver, done: threading.Event) -> None:
    """Say that the driver lives, until it is done. A store that is away for a while is told of once."""
    said = False
    while not done.wait(BEAT_SECONDS):
        try:
            storage.write(place, _lock(driver, time.time()))
        except away() as error:
            if not said:
                print(f"ledger {storage.url} is away, trying on: {words_of(error)}", file=sys.stderr, flush=True)
            said = True


def _lock(driver: Driver, beat: float) -> bytes:
    return json.dumps({**driver.to_dict(), "beat": beat}).encode()


def _folder(study: str) -> str:
    return f".drivers/{quote(study, safe='')}"


def _refusal(storage: Storage, holder: Driver, beat: float) -> str:
    apart = beat - time.time()
    here = _is_near(holder)  # one clock: it is only silent
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
