"""A ledger that is full, read-only or driven twice: a clear message, and afterwards the same figures, each once.

The driver is a process as a person starts it. A disk is a small tmpfs. A host is a name that a driver has for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.ledger.storage import open_storage
from tests.buckets import s3_bucket
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

STUDY = """
question: Do the figures stay the same, whatever becomes of the disk?
family: concept
backbones: [{folder}/tiny]
seeds: {seeds}
data: {{wordnet: {folder}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: {steps}, batch_size: 8, learning_rate: 1.0e-3, warmup: 2, max_length: 32}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
resources: {{lanes: 1, checkpoint_every: {every}, retries: 0, workers_per_run: {workers}}}
"""
RUNS = 1 + 2  # B0 has no seeds
STOPPED = 1
STALE_SECONDS = 4.0  # in place of a minute: after so long without a sign of life another host's driver is dead
ON_A_HOST = f"""
import sys
from types import SimpleNamespace
from orchestration.commands import cli
from orchestration.ledger import drivers
drivers.socket = SimpleNamespace(gethostname=lambda: sys.argv[1])
drivers.BEAT_SECONDS, drivers.STALE_SECONDS = 0.5, {STALE_SECONDS}
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    write_small_wordnet(folder / "wordnet")
    tiny_backbone(folder / "tiny", layers=2)
    for name, seeds, steps, every, workers in (
        ("quick", 2, 20, 10, 1),
        ("twin", 2, 20, 10, 1),
        ("slow", 1, 300, 0, 1),  # one run that can be met in its middle is enough
        ("slow-group", 1, 300, 0, 2),
    ):
        (folder / f"{name}.yaml").write_text(
            STUDY.format(folder=folder, seeds=seeds, steps=steps, every=every, workers=workers)
        )
    return folder


@pytest.fixture(scope="module")
def peaceful(place: Path) -> dict[str, object]:
    """The figures of the study when nothing happens."""
    driver = start(place, "quick", place / "peaceful/ledger")
    assert driver.wait() == 0
    return figures(place / "peaceful/ledger")


@pytest.fixture(autouse=True)
def _no_process_stays() -> Iterator[None]:
    """Whatever a test found, even while a driver was paused."""
    before = set(psutil.Process().children(recursive=True))
    yield
    for process in set(psutil.Process().children(recursive=True)) - before:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.fixture
def disk(place: Path, tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 64 MiB."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("a disk of one's own needs root on Linux")
    where = tmp_path / "disk"
    where.mkdir()
    tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(where)], capture_output=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.decode().strip()}")
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


def start(place: Path, study: str, ledger: Path | str, host: str = "") -> subprocess.Popen[bytes]:
    """`semray run`, in a process group of its own, its words in said-<study>, or said-<host> on a named host."""
    program = ["-c", ON_A_HOST, host] if host else ["-m", "orchestration"]
    command = [sys.executable, *program, "run", f"{study}.yaml", "--ledger", str(ledger)]
    settings = {"SEMRAY_CACHE": str(place / "cache")}
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "MLFLOW_"))}
    with (place / f"said-{host or study}").open("wb") as said:
        return subprocess.Popen(
            command, cwd=place, env={**ours, **settings}, stdout=said, stderr=said, start_new_session=True
        )


def said(place: Path, name: str) -> str:
    return (place / f"said-{name}").read_text()


def figures(ledger: Path | str) -> dict[str, object]:
    held = Ledger(ledger)
    return {
        entry: (held.scores(entry).metrics, held.items(entry).to_pydict()) for entry in held.entries() - held.ids()
    }


def leases(ledger: Path | str) -> int:
    storage = open_storage(ledger)
    return sum(len(storage.children(f".attempts/{run_id}")) for run_id in storage.children(".attempts"))


def test_a_disk_that_is_full(place: Path, disk: Path, peaceful: dict[str, object]) -> None:
    ledger = disk / "ledger"
    driver = start(place, "quick", ledger)
    until(lambda: leases(ledger) == 1)
    filled = (disk / "filler").open("wb", buffering=0)
    try:
        while filled.write(b"0" * 2**20):
            pass
    except OSError:
        filled.close()
    assert driver.wait() != 0
    words = said(place, "quick")
    assert "No space left on device" in words
    assert "Traceback" not in words
    (disk / "filler").unlink()
    assert start(place, "quick", ledger).wait() == 0
    assert figures(ledger) == peaceful


def test_a_ledger_that_becomes_read_only(place: Path, disk: Path, peaceful: dict[str, object]) -> None:
    ledger = disk / "ledger"
    driver = start(place, "quick", ledger)
    until(lambda: leases(ledger) == 1)
    until(lambda: subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True).returncode == 0)
    assert driver.wait() == 2
    words = said(place, "quick")
    assert f"ledger {ledger}: [Errno 30] Read-only file system" in words
    assert "accepted: a folder that may be written" in words
    assert "Traceback" not in words
    assert start(place, "quick", ledger).wait() == 2  # and it is refused from the start
    assert "Traceback" not in said(place, "quick")
    remount(disk, "rw")
    assert start(place, "quick", ledger).wait() == 0
    assert figures(ledger) == peaceful


def test_two_drivers_on_one_ledger(place: Path, tmp_path: Path, peaceful: dict[str, object]) -> None:
    """Two studies of the same runs at once: each run is done once. A second driver of one study is refused."""
    ledger = tmp_path / "ledger"
    one = start(place, "quick", ledger)
    until(lambda: leases(ledger) == 1)
    other = start(place, "twin", ledger)
    again = subprocess.run(
        [sys.executable, "-m", "orchestration", "run", "quick.yaml", "--ledger", str(ledger)],
        cwd=place,
        capture_output=True,
        text=True,
    )
    if one.poll() is None:
        assert again.returncode == 2
        assert f"is being run by process {one.pid}" in again.stderr
    assert (one.wait(), other.wait()) == (0, 0)
    assert figures(ledger) == peaceful
    assert leases(ledger) == RUNS


@pytest.fixture(params=["local", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A ledger that several hosts reach."""
    if request.param == "local":
        yield str(tmp_path / "ledger")
        return
    with s3_bucket() as url:
        yield f"{url}/{tmp_path.name}"


def family(driver: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The driver and all that came of it."""
    return [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]


def away(processes: Sequence[psutil.Process]) -> None:
    """Let processes pause for longer than a driver of another host may be silent."""
    for process in processes:
        process.suspend()
    threading.Event().wait(STALE_SECONDS + 1)


def wake(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def test_a_driver_that_was_paused(place: Path, shared: str, peaceful: dict[str, object]) -> None:
    """Nobody on its host takes its study over: a second driver is told who has it. It goes on as if nothing was."""
    one = start(place, "quick", shared, "here")
    until(lambda: leases(shared) == 1)
    away(family(one)[:1])
    assert start(place, "quick", shared, "here").wait() == 2
    words = said(place, "here")
    assert f"the study quick is being run by process {one.pid} on here\n  accepted: " in words
    assert "Traceback" not in words
    wake(family(one))
    assert one.wait() == 0
    assert figures(shared) == peaceful
    assert leases(shared) == RUNS


def test_a_driver_that_was_paused_on_another_host(place: Path, shared: str, peaceful: dict[str, object]) -> None:
    """Its study is taken over. Woken while the other is at work it begins no run any more, and says who has them."""
    one = start(place, "quick", shared, "here")
    until(lambda: leases(shared) == 1)
    away(family(one)[:1])
    begun = leases(shared)
    other = start(place, "quick", shared, "there")
    until(lambda: leases(shared) > begun)
    away(family(other)[:1])  # nobody takes it over, whatever it takes the first one to see what has become of it
    begun = leases(shared)
    wake(family(one))
    assert one.wait() == 2
    words = said(place, "here")
    assert f"the study quick was taken over by process {other.pid} on there" in words
    assert "Traceback" not in words
    assert leases(shared) == begun
    wake(family(other))
    assert other.wait() == 0
    assert figures(shared) == peaceful


def test_a_host_that_was_paused(place: Path, shared: str, peaceful: dict[str, object]) -> None:
    """With its driver its lanes stand still, in the middle of a run. When all wake, the runs are done already."""
    one = start(place, "quick", shared, "here")
    until(lambda: leases(shared) == 2)
    all_of_it = family(one)
    away(all_of_it)
    assert start(place, "quick", shared, "there").wait() == 0
    assert figures(shared) == peaceful
    begun = leases(shared)
    wake(all_of_it)
    assert one.wait() == 0
    assert "Traceback" not in said(place, "here")
    assert figures(shared) == peaceful
    assert leases(shared) == begun
    assert [open_storage(shared).children(left) for left in (".staging", ".scratch")] == [[], []]
    assert Ledger(shared).failed() == {}


def at_a_trained_run(
    place: Path, study: str, ledger: Path
) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """A driver that is some steps into a trained run, and all processes that came of it."""
    driver = start(place, study, ledger)
    until(lambda: leases(ledger) == 2 and "sentences/s" in said(place, study))
    return driver, family(driver)[1:]


@pytest.mark.parametrize("study", ["slow", "slow-group"])
def test_ctrl_c_once(place: Path, tmp_path: Path, study: str) -> None:
    """The running step ends and is saved, the summary is printed, and the next call goes on from that very step."""
    ledger = tmp_path / "ledger"
    driver, children = at_a_trained_run(place, study, ledger)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does it
    assert driver.wait(timeout=120) == STOPPED
    words = said(place, study)
    assert "stopping: running steps end and are saved" in words
    assert "Traceback" not in words
    assert "report  " in words
    until(lambda: not any(process.is_running() for process in children))
    (saved,) = ledger.glob(".scratch/*/step-*")
    assert 0 < int(saved.name.removeprefix("step-")) < 300
    assert Ledger(ledger).failed() == {}
    assert start(place, study, ledger).wait() == 0
    held = Ledger(ledger)
    assert len(held.entries()) == 2 * (1 + 1)  # B0 and a seed of B1: trained, and scored on one task
    assert leases(ledger) == 2 + 1
    for run_id in held.ids():
        steps = [row["step"] for row in held.curve_of(run_id).to_pylist() if row["name"] == "loss"]
        assert steps in ([], [*range(1, 301)])


@pytest.mark.parametrize("study", ["slow", "slow-group"])
def test_ctrl_c_twice(place: Path, tmp_path: Path, study: str) -> None:
    """The second one ends it at once; what was finished stays, and nothing is left running."""
    ledger = tmp_path / "ledger"
    driver, children = at_a_trained_run(place, study, ledger)
    finished = Ledger(ledger).ids()
    os.killpg(driver.pid, signal.SIGINT)
    until(lambda: "stopping: " in said(place, study))
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.wait(timeout=60) == 130
    assert "Traceback" not in said(place, study)
    until(lambda: not any(process.is_running() for process in children))
    assert Ledger(ledger).ids() >= finished
    assert Ledger(ledger).failed() == {}
