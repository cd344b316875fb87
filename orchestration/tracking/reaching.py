"""MLflow's address and client settings, and its errors in words without secrets."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from orchestration.ledger.beside import beside
from orchestration.study.writable import nearest_existing

SQLITE = "sqlite:///"
ADDRESS = re.compile(r"\w[\w+.-]*://\S*")
SETTINGS = {  # of the MLflow client; a value set by the user is kept
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # stdout is for results
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # the default 7 delays a study for minutes without a server
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
}


def default_uri(ledger: str) -> str:
    """$MLFLOW_TRACKING_URI, else mlflow.db beside a local ledger, or in this folder when the ledger is remote."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    place = str(beside(ledger).absolute() / "mlflow.db")
    return SQLITE + place.replace("%", "%25").replace("?", "%3F")  # MLflow makes an empty folder of that name, too


def database_of(uri: str) -> Path | None:
    """The file of a local database, as SQLAlchemy reads its URI; None for any other URI."""
    if not uri.startswith(SQLITE):
        return None
    return Path(unquote(uri.removeprefix(SQLITE).partition("?")[0])).absolute()


def refuse_unwritable(uri: str) -> None:
    """PermissionError for a local database that cannot be written: MLflow's client would try for minutes."""
    database = database_of(uri)
    if database is None:
        return
    if os.path.lexists(database) and not database.is_file():
        raise PermissionError(f"{database} is no plain file")
    folder = nearest_existing(database.parent)
    for place, fit in ((folder, folder.is_dir()), (database, True)):  # SQLite keeps its journal beside the file
        if not fit or (place.exists() and not os.access(place, os.W_OK)):
            raise PermissionError(f"{place} cannot be written")


def shown(uri: str) -> str:
    """The URI without user, password and query; unchanged for a path. Passwords may have any characters."""
    scheme, between, rest = uri.partition("://")
    if scheme in ("sqlite", "file"):
        return uri
    place, _, query = rest.partition("?")
    host = "…" if "@" in query else place.rpartition("@")[2]  # the @ may be the password's or the query's
    return f"{scheme}{between}{host}"


def at_mlflow(uri: str | None) -> tuple[str, ...]:
    """The words to type behind a command for the MLflow that was asked for; none where it is the usual one.

    None either where its address holds a password: the command is printed.
    """
    return ("--mlflow", uri) if uri is not None and shown(uri) == uri else ()


def reason(error: Exception, uri: str) -> str:
    """The error in one line, without secrets of this or another URI."""
    message = str(error).replace(uri, shown(uri))
    text = ADDRESS.sub(lambda found: shown(found[0]), message).strip() or type(error).__name__
    if "Max retries exceeded" in text or "Connection" in type(error).__name__:
        return "the server does not answer"
    return text.splitlines()[0][:200]


def outside_errors() -> tuple[type[Exception], ...]:
    """Errors of MLflow, its database, the network, the disk or an object store, or of a driver that is not
    installed. Any other error is a mistake of ours."""
    from alembic.util import CommandError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    store: Any = sys.modules.get("botocore.exceptions")
    of_store = (store.BotoCoreError, store.ClientError) if store else ()
    return (MlflowException, SQLAlchemyError, CommandError, ImportError, OSError, *of_store)


@contextmanager
def mlflow_settled() -> Iterator[None]:
    """Set `SETTINGS` for good; within the context, MLflow's migrations and urllib3's retries log nothing."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    levels = {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3": logging.ERROR}
    before = {name: logging.getLogger(name).level for name in levels}
    import mlflow  # noqa: F401  # sets its own levels when first imported

    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
