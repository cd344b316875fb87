"""`semray ui` leaves no server behind, however it is ended and however far it came."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.commands import ui
from orchestration.commands.cli import main
from orchestration.commands.terminal import DONE
from orchestration.study.errors import StudyError
from orchestration.tracking.ui import server, taken
from tests.searching import RATES
from tests.waiting import free_port, until

# The command itself, with a server that starts for ever and a study that MLflow would know.
COMMAND = """
import sys
from orchestration.commands.cli import main
from orchestration.tracking import ui
ui.experiment_page = lambda *where, **base: "page"
sys.executable = sys.argv.pop(1)
sys.exit(main(["ui", *sys.argv[1:]]))
"""


def heard() -> None:
    """As in a terminal, also where these tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_its_server_ends_with_it(tmp_path: Path, asked: signal.Signals) -> None:
    server, study, noted = tmp_path / "server", tmp_path / "rates.yaml", tmp_path / "pid"
    server.write_text(f"#!/bin/sh\necho $$ > {noted}.new\nmv {noted}.new {noted}\nexec sleep 600\n")
    server.chmod(0o755)
    study.write_text(RATES)
    words = [sys.executable, "-c", COMMAND, str(server), str(study), "--ledger", str(tmp_path / "ledger")]
    command = subprocess.Popen(words, cwd=Path(__file__).resolve().parents[3], preexec_fn=heard)
    until(noted.exists)
    os.kill(command.pid, asked)
    assert command.wait(timeout=60) == DONE
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)


def test_a_port_on_which_another_program_answers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another MLflow would show its own study at the address of this one."""
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    (tmp_path / "rates.yaml").write_text(RATES)
    MlflowClient(tracking_uri=uri).create_experiment("rates")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ["ui", str(tmp_path / "rates.yaml"), "--ledger", str(tmp_path / "ledger"), "--mlflow", uri]
        assert main([*words, "--port", str(port)]) == 2
        assert f"port {port} is taken" in capsys.readouterr().err
        monkeypatch.setattr(ui, "PORTS", range(port, port + 1))
        assert main(words) == 2
        assert f"ports {port} to {port} are taken" in capsys.readouterr().err
    assert not taken(port)


def test_a_server_that_ends_at_once_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    starting = server(f"sqlite:///{tmp_path}/mlflow.db", free_port())
    with pytest.raises(StudyError, match="no server answers at http"), starting:
        raise AssertionError
