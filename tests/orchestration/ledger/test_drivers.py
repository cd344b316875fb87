"""Drivers that come and go: one at a time holds a study, and what a killed one left is adopted."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from orchestration.ledger import attempts, drivers
from orchestration.ledger.drivers import driving, this_process
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import LocalStorage, open_storage
from orchestration.study.errors import StudyError
from tests.ledger_runs import do, leave, make_run, scored, training
from tests.waiting import until

HOLD = """
    import signal, sys
    from pathlib import Path
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.run import Run, Scored, Trained
    ledger, run = Ledger(sys.argv[1]), Run.from_dict({run!r})
    def wait(folder=None):
        print("ready", flush=True)
        signal.pause()
    with ledger.drive("study"):
        attempt = ledger.lease(run.id)
        {then}
"""


def start_driver(url: str, then: str) -> subprocess.Popen[str]:
    """Another process that drives the study, leases the run, does `then`, and says when it is there."""
    code = textwrap.dedent(HOLD).format(run=make_run().to_dict(), then=then)
    process = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.communicate(timeout=30)


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    other = start_driver(ledger.url, "wait()")
    with (
        pytest.raises(
            StudyError, match=rf"study is being run by process {other.pid} on .*\n  accepted: .*another ledger$"
        ),
        ledger.drive("study"),
    ):
        pass
    with ledger.drive("another study"):
        assert ledger.held_elsewhere(make_run().id)
    end(other)
    with ledger.drive("study"):
        assert not ledger.held_elsewhere(make_run().id)
        with pytest.raises(StudyError, match="this process itself"), Ledger(tmp_path).drive("study"):
            pass
    with ledger.drive("study"):
        pass


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that may be stale is watched for a quarter of a second."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.1)


@pytest.mark.usefixtures("quick_beats")
@pytest.mark.parametrize("host", [f"not-{socket.gethostname()}", socket.gethostname()])
@pytest.mark.parametrize(("age", "free"), [(1.0, False), (3600.0, True), (-365 * 86400.0, True)])
def test_a_driver_out_of_sight_lives_by_its_beat(ledger: Ledger, host: str, age: float, free: bool) -> None:
    """On another host, or in another container of this host's name. One whose clock is ahead is not waited for."""
    lock = {
        "study": "study",
        "host": host,
        "pid": 2**22 + 1,  # no process has so high an id
        "started": 1.0,
        "beat": time.time() - age,
    }
    open_storage(ledger.url).create(".drivers/study/4", json.dumps(lock).encode())
    if free:
        with ledger.drive("study"):
            pass
    else:
        with pytest.raises(StudyError, match=f"being run by process 4194305 on {host}"), ledger.drive("study"):
            pass


@pytest.mark.parametrize("off", [-300.0, 365 * 86400.0])
def test_a_driver_whose_clock_is_off_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """It goes on beating, by its own clock, and keeps its study."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.8)  # watched for two seconds: a full machine delays a beat
    storage, done = LocalStorage(tmp_path), threading.Event()

    def beat() -> None:
        while not done.is_set():
            storage.write(".drivers/study/1", lock(7, time.time() + off))
            done.wait(0.02)

    beating = threading.Thread(target=beat)
    beating.start()
    until(lambda: storage.children(".drivers/study") == ["1"])
    try:
        with (
            pytest.raises(
                StudyError, match=r"process 7 on elsewhere \(its clock is \d+ s (ahead of|behind) this one"
            ),
            Ledger(tmp_path).drive("study"),
        ):
            pass
    finally:
        done.set()
        beating.join()
    said = capfd.readouterr().err
    assert "the last sign of life of process 7 on elsewhere is" in said
    assert ("after" if off > 0 else "before") in said


def test_a_driver_that_stands_still_on_this_host_has_no_clock_of_its_own(tmp_path: Path) -> None:
    lock = {**this_process("study").to_dict(), "beat": time.time() - 300}
    LocalStorage(tmp_path).create(".drivers/study/1", json.dumps(lock).encode())
    with (
        pytest.raises(StudyError, match=r"is being run by this process itself\n  accepted: "),
        Ledger(tmp_path).drive("study"),
    ):
        pass


def a_lock(**fields: object) -> str:
    return json.dumps({**this_process("study").to_dict(), "beat": time.time(), **fields})


def test_a_driver_lives_on_when_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """When a process began is told by the clock of now: it seems another one, and is watched, once."""
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.8)  # watched for two seconds: a full machine delays a beat
    with Ledger(tmp_path).drive("study"):
        began = psutil.Process().create_time()
        monkeypatch.setattr(psutil.Process, "create_time", lambda process: began + 2)
        for _ in range(2):
            with pytest.raises(StudyError, match="this process itself"), Ledger(tmp_path).drive("study"):
                pass
    assert capfd.readouterr().err.count("watching it for") == 1


@pytest.mark.usefixtures("quick_beats")
def test_a_process_id_that_was_given_again_holds_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    leave(tmp_path / ".drivers" / "study" / "1", a_lock(started=1.0))
    with Ledger(tmp_path).drive("study"):
        assert "watching it for" in capfd.readouterr().err


def test_a_driver_that_was_killed_holds_nothing_though_nobody_asked_after_it(tmp_path: Path) -> None:
    """Its process is in the table until its parent asks; without one that does, as in some containers, for ever."""
    other = start_driver(str(tmp_path), "wait()")
    other.kill()
    until(lambda: psutil.Process(other.pid).status() == psutil.STATUS_ZOMBIE)
    with Ledger(tmp_path).drive("study"):
        pass
    end(other)


@pytest.mark.timeout(20)  # a pipe is not waited for
@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", '{"study": 5}', "[" * 100_000, "a folder", "a pipe"),
        *({"pid": -1}, {"pid": 0}, {"beat": math.nan}, {"beat": math.inf}),
        {"host": "elsewhere", "beat": math.nan},
    ],
    ids=lambda content: str(content)[:40],
)
def test_a_lock_that_is_damaged_is_named(tmp_path: Path, content: str | dict[str, object]) -> None:
    place = tmp_path / ".drivers" / "study" / "3"
    leave(place, content if isinstance(content, str) else a_lock(**content))
    (place.parent / ".DS_Store").write_text("")
    with (
        pytest.raises(LedgerError, match=r"\.drivers/study/3: .*\n  accepted: .*delete"),
        Ledger(tmp_path).drive("study"),
    ):
        pass


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_a_lease_ends_with_its_run(tmp_path: Path, end: str) -> None:
    """Its driver lives on; a study that lacks the run later, since it was set aside, does not wait for that one."""
    one, other, run = Ledger(tmp_path), Ledger(tmp_path), make_run()
    with one.drive("one"), other.drive("other"):
        attempt = one.lease(run.id)
        assert other.held_elsewhere(run.id) == one.driver
        assert not one.held_elsewhere(run.id)  # none waits for itself
        if end == "finished":
            do(one, run)
            one.set_aside(run.id)
        else:
            one.fail(run, attempt, "ValueError: no", "")
        assert not other.held_elsewhere(run.id)
        assert other.lease(run.id) == one.newest(run.id)
        assert one.held_elsewhere(run.id)
        one.forget(run.id)  # what another driver leased is not this one's to end
        assert one.held_elsewhere(run.id)


def lock(pid: int, beat: float) -> bytes:
    return json.dumps({"study": "study", "host": "elsewhere", "pid": pid, "started": 1.0, "beat": beat}).encode()


def test_a_driver_whose_study_was_taken_over(ledger: Ledger) -> None:
    """It was paused for longer than others wait, and finds out when it begins its next run."""
    run = make_run()
    with ledger.drive("study"):
        attempt = ledger.lease(run.id)
        open_storage(ledger.url).create(".drivers/study/2", lock(7, time.time()))
        with pytest.raises(
            StudyError, match=r"study study was taken over by process 7 on elsewhere.*\n  accepted: "
        ):
            ledger.lease(run.id)
        assert ledger.newest(run.id) == attempt
    with pytest.raises(StudyError, match="being run by process 7"), ledger.drive("study"):
        pass


class Slow(LocalStorage):
    """A store that is slow at one moment: there, others act. It is a store in all other respects."""

    def __init__(self, root: Path, moment: str, others: Callable[[LocalStorage], None]) -> None:
        super().__init__(root)
        self.moment, self.others = moment, [others]

    def _pass(self, moment: str) -> None:
        if moment == self.moment and self.others:
            self.others.pop()(LocalStorage(self.root))

    def read(self, name: str) -> bytes:
        self._pass("before reading the lock")
        return super().read(name)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        self._pass("before creating a lock")
        super().create(name, content, durable=durable)


def test_a_number_that_another_leases_meanwhile_is_not_leased_again(tmp_path: Path) -> None:
    run = make_run()
    slow = Slow(tmp_path, "before creating a lock", lambda storage: attempts.lease(storage, run.id, None))
    assert attempts.lease(slow, run.id, None) == 2
    assert Ledger(tmp_path).newest(run.id) == 2


@pytest.mark.usefixtures("quick_beats")
@pytest.mark.parametrize("moment", ["before reading the lock", "before creating a lock"])
@pytest.mark.parametrize("left", [["2"], ["3"], ["2", "3"]])
def test_two_that_find_one_stale_lock(tmp_path: Path, moment: str, left: list[str]) -> None:
    """While one of them is slow the other takes over, perhaps twice: the slow one is refused, and nothing is lost."""
    LocalStorage(tmp_path).create(".drivers/study/1", lock(1, time.time() - 3600))

    def others(storage: LocalStorage) -> None:
        for number in left:
            storage.create(f".drivers/study/{number}", lock(int(number), time.time()))
        storage.remove(".drivers/study/1")

    with pytest.raises(StudyError, match=f"run by process {left[-1]} on elsewhere"):  # noqa: SIM117
        with driving(Slow(tmp_path, moment, others), "study"):
            pass
    assert LocalStorage(tmp_path).children(".drivers/study")[-1:] == left[-1:]


@pytest.mark.usefixtures("quick_beats")
def test_a_study_released_while_its_lock_is_watched_is_free(tmp_path: Path) -> None:
    """Its driver was on a host whose clock is off, and ended meanwhile."""
    place = ".drivers/study/1"
    LocalStorage(tmp_path).create(place, lock(7, time.time() - 3600))

    def release(storage: LocalStorage) -> None:
        storage.write(place, lock(7, drivers.RELEASED))

    slow = Slow(tmp_path, "before reading the lock", lambda _: slow.others.append(release))
    with driving(slow, "study"):
        assert LocalStorage(tmp_path).children(".drivers/study") == ["2"]


@pytest.mark.usefixtures("quick_beats")
def test_a_driver_taken_for_dead_lives_once_it_beats_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was paused. Until then it is watched once, however many of its runs are asked about."""
    storage = LocalStorage(tmp_path)
    paused = drivers.Driver(study="study", host="elsewhere", pid=7, started=1.0)
    storage.create(".drivers/study/1", lock(7, time.time() - 3600))
    assert [drivers.is_driving(storage, paused) for _ in range(2)] == [False, False]
    assert capfd.readouterr().err.count("watching it for") == 1
    storage.write(".drivers/study/1", lock(7, time.time()))
    assert drivers.is_driving(storage, paused)


def test_a_study_changes_hands_again_and_again(ledger: Ledger) -> None:
    """Numbers never start anew, so that whoever was away cannot take one that is in use again."""
    storage = open_storage(ledger.url)
    for number in ("1", "2", "3"):
        with ledger.drive("study"):
            assert storage.children(".drivers/study") == [number]
        assert storage.children(".drivers/study") == [number]


def test_a_driver_lives_on_while_its_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drivers, "BEAT_SECONDS", 0.01)
    place = tmp_path / ".drivers" / "study"

    def beat() -> float:
        return json.loads((place / "1").read_text())["beat"]

    with driving(LocalStorage(tmp_path), "study"):
        place.rename(tmp_path / "away")
        place.write_text("a file where the folder was")
        said = ""
        while "is away" not in said:
            said += capfd.readouterr().err
        place.unlink()
        (tmp_path / "away").rename(place)
        before = beat()
        while beat() == before:
            pass
    assert (said + capfd.readouterr().err).count("is away, trying on") == 1


def test_a_finished_run_of_a_killed_driver_is_adopted(tmp_path: Path) -> None:
    ledger, run = Ledger(tmp_path), make_run()
    other = start_driver(ledger.url, "ledger.stage(Trained(run=run), attempt); wait()")
    assert ledger.adopt() == []  # its driver lives
    assert ledger.staged(run.id, 1)
    end(other)
    ledger.fail(run, 1, "lane lost", "")
    for left in (f".train/{run.id}/state", f".scratch/{run.id}.1/step"):
        open_storage(ledger.url).write(left, b"")
    with ledger.drive("study") as adopted:
        assert adopted == [run.id]
    assert ledger.training(run.id).attempt == 1
    assert ledger.adopt() == []
    assert ledger.failure(run.id) is None  # what is done leaves nothing but its entries and its attempts' numbers
    assert os.listdir(tmp_path / ".train") == os.listdir(tmp_path / ".scratch") == []


def test_a_half_written_run_of_a_killed_driver_is_dropped(tmp_path: Path) -> None:
    """The process dies while the model is being written, which comes before the marker."""
    ledger, run = Ledger(tmp_path), make_run()
    other = start_driver(ledger.url, "ledger.stage(Trained(run=run, save_model=wait), attempt)")
    assert os.listdir(tmp_path / ".staging") == [f"{run.id}.1.part"]
    assert ledger.adopt() == []
    assert os.listdir(tmp_path / ".staging") == [f"{run.id}.1.part"]
    end(other)
    with ledger.drive("study") as adopted:
        assert adopted == []
    assert os.listdir(tmp_path / ".staging") == []
    assert ledger.ids() == set()


def test_of_several_orphans_the_newest_is_adopted(ledger: Ledger) -> None:
    """The tenth attempt is newer than the ninth."""
    run = make_run()
    for _ in range(8):
        ledger.lease(run.id)
    for value in (0.1, 0.2):
        attempt = ledger.lease(run.id)
        for result in (training(run), scored(run, value)):
            ledger.stage(result, attempt)
    ledger.lease(run.id)
    assert sorted(ledger.adopt()) == [run.id, run.entry("t2d")]
    assert ledger.training(run.id).attempt == 10
    assert ledger.scores(run.entry("t2d")).metrics["t2d/recall@10"].value == 0.2
    assert not ledger.staged(run.id, 9)
