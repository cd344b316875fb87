"""`semray ui`: MLflow's pages of a study, on this machine alone, until Ctrl-C."""

from __future__ import annotations

import signal
import socket
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from orchestration.commands.terminal import DONE, ledger_of, say, shown_path, study_of
from orchestration.commands.waiting import doing
from orchestration.study.errors import StudyError

PORTS = range(5000, 5020)  # the first that is free


def ui(options: Namespace) -> int:
    """Start MLflow's server and say where the study's table is; with a server elsewhere, only that."""
    from orchestration.tracking.reaching import database_of, default_uri, shown
    from orchestration.tracking.ui import experiment_page, server

    study, ledger = study_of(options), ledger_of(options)
    uri = options.mlflow or default_uri(ledger.url)
    if uri.startswith(("http://", "https://")):
        print(experiment_page(uri, study.name, shown(uri)))
        return DONE
    page = experiment_page(uri, study.name, base="")
    begun, port = _end_when_asked(), options.port or _free_port()
    with doing("starting MLflow's server"), server(uri, port, begun) as address:
        print(f"{address}{page}", flush=True)
        say(f"{shown_path(database_of(uri) or shown(uri))} on this machine alone; Ctrl-C ends the server")
        while True:
            signal.pause()


def _end_when_asked() -> Callable[[], None]:
    """Ctrl-C, a request to end and a terminal that closes are how this command is meant to end, and its server.

    They wait until what is returned is called: a server that is just being started is nobody's to end.
    """
    asked = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        asked.append(signal.SIGHUP)
    begun = ending = False

    def end() -> None:
        if begun and ending:
            raise SystemExit(DONE)

    def hear(number: int, frame: Any) -> None:
        nonlocal ending
        for one in asked:
            signal.signal(one, signal.SIG_IGN)  # asked twice, it still ends the server first
        ending = True
        end()

    def begin() -> None:
        nonlocal begun
        begun = True
        end()

    for one in asked:
        signal.signal(one, hear)
    return begin


def _free_port() -> int:
    for port in PORTS:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise StudyError(f"ports {PORTS.start} to {PORTS.stop - 1} are taken\n  accepted: a free one, as --port 5100")
