"""`semray ui`: serve MLflow's pages of a study on this machine only, until Ctrl-C."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from orchestration.commands.terminal import DONE, ledger_of, say, shown_path, study_of
from orchestration.commands.waiting import doing
from orchestration.study.errors import StudyError

PORTS = range(5000, 5020)  # the first that is free


def ui(options: Namespace) -> int:
    """Start MLflow's server and print the address of the study's table; with a remote server, only print it."""
    from orchestration.tracking.reaching import database_of, default_uri, shown
    from orchestration.tracking.ui import experiment_page, server

    study, ledger = study_of(options), ledger_of(options)
    uri = options.mlflow or default_uri(ledger.url)
    if uri.startswith(("http://", "https://")):
        print(experiment_page(uri, study.name, shown(uri)))
        return DONE
    page = experiment_page(uri, study.name, base="")
    begun, port = _end_on_signals(), options.port or _free_port()
    with doing("starting MLflow's server"), server(uri, port, begun) as address:
        print(f"{address}{page}", flush=True)
        say(f"{shown_path(database_of(uri) or shown(uri))} on this machine alone; Ctrl-C ends the server")
        while True:
            signal.pause()


def _end_on_signals() -> Callable[[], None]:
    """End this command and its server, with exit code 0, on Ctrl-C, SIGTERM or a closed terminal.

    Signals wait until the returned function is called, as a server cannot be ended while it starts.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        signals.append(signal.SIGHUP)
    begun = ending = False

    def end() -> None:
        if begun and ending:
            raise SystemExit(DONE)

    def hear(number: int, frame: Any) -> None:
        nonlocal ending
        for signal_number in signals:
            signal.signal(signal_number, signal.SIG_IGN)  # a second signal must not end us before the server
        ending = True
        end()

    def begin() -> None:
        nonlocal begun
        begun = True
        end()

    for signal_number in signals:
        signal.signal(signal_number, hear)
    return begin


def _free_port() -> int:
    from orchestration.tracking.ui import taken

    for port in PORTS:
        if not taken(port):
            return port
    raise StudyError(f"ports {PORTS.start} to {PORTS.stop - 1} are taken\n  accepted: a free one, as --port 5100")
