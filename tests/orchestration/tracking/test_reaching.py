"""Where MLflow is, what is said when it is not, and that no secret is told. Real MLflow throughout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.ledger.ledger import Ledger
from orchestration.machines.doctor import tracking
from orchestration.tracking.reaching import at_mlflow, database_of, default_uri, reason, shown
from orchestration.tracking.sync import sync
from orchestration.verdicts.findings import Findings
from tests.finished_study import CLAIMS, findings_of
from tests.mirror import everything, points, search
from tests.waiting import free_port

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # MLflow's own affair


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (None, ()),
        ("sqlite:////data/other.db", ("--mlflow", "sqlite:////data/other.db")),
        ("http://host:5000", ("--mlflow", "http://host:5000")),
        ("http://me:s3cr3t@host:5000", ()),
        ("postgresql://host/db?password=s3cr3t", ()),
    ],
)
def test_a_printed_command_names_the_mlflow_that_was_asked_for(uri: str | None, words: tuple[str, ...]) -> None:
    """But not one whose address holds a password."""
    assert at_mlflow(uri) == words


def test_no_secret_reaches_mlflow(
    small: tuple[Ledger, Findings], uri: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t-in-the-environment")
    ledger, findings = small
    sync(findings, ledger, uri)
    assert "s3cr3t" not in repr(everything(uri))
    nobody = sync(findings, ledger, "http://me:s3cr3t@127.0.0.1:1")
    assert nobody.problem == "the server does not answer"
    assert "s3cr3t" not in nobody.line
    assert nobody.seconds < 30
    assert capfd.readouterr() == ("", "")


@given(st.text(st.characters(categories=["Lu", "P", "S", "Zs"], exclude_characters="`"), max_size=4))
def test_a_password_is_never_shown_whatever_signs_it_holds(signs: str) -> None:
    secret = f"s3cr3t{signs}s3cr3t"
    for uri in (
        f"http://me:{secret}@host:5000/",
        f"postgresql://me:{secret}@host/db",
        f"postgresql://host/db?user=me@there&password={secret}",
        f"mysql+pymysql://host/db?password={secret}",
    ):
        told = reason(ValueError(f"Invalid url: {uri} of no host"), uri)
        assert "s3cr3t" not in shown(uri) + told
        assert told.startswith("Invalid url: ")
        assert told.endswith(" of no host")
        assert shown(shown(uri)) == shown(uri)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("http://me:a/b@c@host:5000", "http://host:5000"),
        ("postgresql://me:a?b@host/db", "postgresql://…"),
        ("postgresql:///db?host=h&user=me&password=a", "postgresql:///db"),
        ("http://host:5000", "http://host:5000"),
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("file:///home/me@work/mlruns", "file:///home/me@work/mlruns"),
        ("./mlruns@work?", "./mlruns@work?"),
    ],
)
def test_what_is_shown_of_an_address(uri: str, told: str) -> None:
    assert shown(uri) == told


def test_an_address_within_a_sentence_ends_with_its_word() -> None:
    """The proxy's, not the server's: whoever names two has both hidden."""
    said = "no way to http://me:s3cr3t@proxy:1 from me@here"
    assert reason(ValueError(said), "http://host") == "no way to http://proxy:1 from me@here"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("first\nsecond"), "first"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 300), "x" * 200),
        (ConnectionRefusedError("[Errno 111]"), "the server does not answer"),
    ],
)
def test_a_reason_is_one_line(error: Exception, told: str) -> None:
    assert reason(error, "http://host") == told


def test_default_uri(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_uri(str(tmp_path / "ledger")) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.chdir(tmp_path)
    assert default_uri("s3://bucket/ledger") == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert default_uri("s3://bucket/ledger") == "http://mlflow.example:5000"


@pytest.mark.parametrize("name", ["is it better?", "50%41", "my%20project", "100%", "a#b;c&d=e [x]* 日本"])
def test_the_database_lies_beside_the_ledger_whatever_its_folder_is_called(
    small: tuple[Ledger, Findings],
    empty_database: Path,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A URI has its own meaning for `?` and for `%` with two digits."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    ledger, findings = small
    uri = default_uri(str(folder / "ledger"))
    assert database_of(uri) == folder / "mlflow.db"
    assert sync(findings, ledger, uri).new == 12
    assert len(list((folder / "mlartifacts").rglob("report.html"))) == 1
    assert sync(findings, ledger, uri).line.endswith(": up to date")
    assert tracking(str(folder / "ledger")).ok
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(folder) and path.is_file()] == []


def test_a_file_in_place_of_the_folder_is_said(small: tuple[Ledger, Findings], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = sync(small[1], small[0], f"sqlite:///{tmp_path}/file/deep/mlflow.db")
    assert done.problem == f"{tmp_path}/file cannot be written"


IN_ITS_PLACE: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to nothing": lambda place: place.symlink_to("/nowhere/mlflow.db"),
}


@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_what_is_no_database_is_not_tried_for_minutes(
    small: tuple[Ledger, Findings], tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    ledger, findings = small
    IN_ITS_PLACE[what](tmp_path / "mlflow.db")
    done = sync(findings, ledger, default_uri(str(tmp_path / "ledger")))
    assert done.problem == f"{tmp_path}/mlflow.db is no plain file"
    assert done.seconds < 30


@pytest.fixture
def start_server(uri: str, tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Start a real `mlflow server` on a port; returns when it listens."""
    started: list[subprocess.Popen[str]] = []

    def start(port: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, "--workers", "1",
                   "--host", "127.0.0.1", "--port", str(port), "--artifacts-destination", str(tmp_path / "proxied")]  # fmt: skip
        environment = os.environ | {
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        server = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(server)
        wait_for(server, "Application startup complete")
        return server

    yield start
    for server in started:
        kill(server)


def wait_for(server: subprocess.Popen[str], words: str) -> None:
    """Read the server's output up to these words, then go on draining it."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if words in line:
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return
    raise AssertionError("".join(said))


def kill(server: subprocess.Popen[str]) -> None:
    """kill -9 of the server and its workers, which are a process group of their own."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_a_server_that_dies_delays_nothing_and_is_caught_up(
    uri: str, tmp_path: Path, start_server: Callable[[int], subprocess.Popen[str]]
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    ledger = Ledger(tmp_path / "ledger")
    server = start_server(port)
    few = sync(replace(findings_of(ledger, 2, CLAIMS[:1]), revision="2"), ledger, address)
    assert few.problem == ""
    findings = findings_of(ledger, 3, CLAIMS[:1])
    run = next(run for run in findings.runs if run.arm == "B1")
    assert few.links[run.id].startswith(f"{address}/#/experiments/")

    kill(server)
    begun = time.monotonic()
    away = sync(findings, ledger, address)
    assert away.problem == "the server does not answer"
    assert time.monotonic() - begun < 30

    start_server(port)
    caught_up = sync(findings, ledger, address)
    assert (caught_up.problem, caught_up.new) == ("", 3)  # the runs of the third seed
    again = sync(findings, ledger, address)
    assert (again.new, again.updated) == (0, 0)
    keys = [run.data.tags["semray.run_key"] for run in search(uri)]
    assert len(keys) == len(set(keys)) == 1 + 10 + 1
    assert len(points(uri)) == len(set(points(uri)))
