"""Starts an MLflow server on this machine alone, and finds the page of a study on it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from orchestration.study.errors import StudyError
from orchestration.study.names import typed
from orchestration.tracking import pages
from orchestration.tracking.artifacts import follow
from orchestration.tracking.reaching import mlflow_settled, outside_errors, reason, refuse_unwritable, shown

LOOPBACK = "127.0.0.1"
START_SECONDS = 120.0
SERVER = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


def experiment_page(uri: str, study: str, base: str) -> str:
    """The address of a study's table on a server at `base`; its columns are verdicts and claimed metrics.

    StudyError if MLflow has no such experiment, or does not answer.
    """
    try:
        refuse_unwritable(uri)
        with mlflow_settled():
            from mlflow import MlflowClient

            found = MlflowClient(tracking_uri=uri).get_experiment_by_name(study)
        if found is not None:
            follow(uri, found)
    except outside_errors() as error:
        raise StudyError(
            f"mlflow {shown(uri)}: {reason(error, uri)}\n  accepted: a server that answers, or a database"
        ) from None
    if found is None:
        raise StudyError(
            f"mlflow: no experiment {study}\n  accepted: one that `{typed('sync', study)}` has written"
        )
    viewed = pages.VIEW_TAG in found.tags
    return f"{base.rstrip('/')}/{pages.experiment(found.experiment_id, viewed=viewed)}"


def taken(port: int) -> bool:
    """Whether some program of this machine listens on the port."""
    with socket.socket() as one:
        return one.connect_ex((LOOPBACK, port)) == 0


@contextmanager
def server(uri: str, port: int, begun: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Run an MLflow server on loopback within the block; yields its address once it answers.

    begun: called once the server is certain to end with the block. StudyError if it ends or does not answer, and
    for a taken port, on which another server would answer for this one.
    """
    if taken(port):
        raise StudyError(f"mlflow: port {port} is taken\n  accepted: a free one, as `--port 5100`")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    command += ["--host", LOOPBACK, "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(
        command,
        env={**os.environ, **SERVER},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the command, which then ends the server
    )
    address = f"http://{LOOPBACK}:{port}"
    try:
        begun()
        _until_it_answers(process, address)
        yield address
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and its workers, which are one process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            return


def _until_it_answers(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise StudyError(
        f"mlflow: no server answers at {address}\n  accepted: a free port, as `--port 5100`, and a database that "
        "this MLflow reads"
    )
