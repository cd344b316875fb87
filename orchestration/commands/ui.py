"""`semray ui`: MLflow's pages of a study, on this machine alone, until Ctrl-C."""

from __future__ import annotations

import signal
import socket
from argparse import Namespace
from typing import Any

from orchestration.commands.terminal import DONE, ledger_of, say, shown_path, study_of
from orchestration.commands.waiting import doing
from orchestration.study.errors import StudyError

PORTS = range(5000, 5020)  # the first that is free


def ui(options: Namespace) -> int:
    """Start MLflow's server and say where the study's table is; with a server elsewhere, only that."""
    from orchestration.tracking.sync import database_of, default_uri, shown
    from orchestration.tracking.ui import experiment_page, server

    study, ledger = study_of(options), ledger_of(options)
    uri = options.mlflow or default_uri(ledger.url)
    if uri.startswith(("http://", "https://")):
        print(experiment_page(uri, study.name, shown(uri)))
        return DONE
    page = experiment_page(uri, study.name, base="")
    _end_when_asked()
    with doing("starting MLflow's server"), server(uri, options.port or _free_port()) as address:
        print(f"{address}{page}", flush=True)
        say(f"{shown_path(database_of(uri) or uri)} on this machine alone; Ctrl-C ends the server")
        while True:
            signal.pause()


def _end_when_asked() -> None:
    """Ctrl-C, a request to end and a terminal that closes are how this command is meant to end, and its server."""
    asked = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        asked.append(signal.SIGHUP)

    def end(number: int, frame: Any) -> None:
        for one in asked:
            signal.signal(one, signal.SIG_IGN)  # asked twice, it still ends the server first
        raise SystemExit(DONE)

    for one in asked:
        signal.signal(one, end)


def _free_port() -> int:
    for port in PORTS:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise StudyError(f"ports {PORTS.start} to {PORTS.stop - 1} are taken\n  accepted: a free one, as --port 5100")
