"""`semray ui` leaves no server behind, however it is ended and however far it came."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.commands.terminal import DONE
from tests.searching import RATES
from tests.waiting import until

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
