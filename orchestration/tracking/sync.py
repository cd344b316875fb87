"""The ledger's mirror in MLflow, written by the driver alone and only here.

Experiment = study; a parent run per revision of the study; below it a run for every run and every comparison.
Syncing again adds nothing. The ledger stays the source of truth: when MLflow is away, nothing else is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.cache import cache_folder
from orchestration.ledger.beside import beside
from orchestration.tracking.entries import Entry, Planned, planned, planned_study
from orchestration.tracking.write import DIGEST, EVIDENCE, write_entry

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as TrackedRun

    from orchestration.ledger.ledger import Ledger
    from orchestration.verdicts.findings import Findings

KEY, KIND = "semray.run_key", "semray.kind"
PARENT = "mlflow.parentRunId"
LOCK_SECONDS = 600  # the longest that a sync waits for another one of the same study
SETTINGS = {  # of the MLflow client; a value set by the user stands
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # stdout is for results
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # the default of 7 holds a study up for minutes when a server is gone
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
}


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """What one sync did. problem is empty when MLflow now shows what the ledger holds; links: run id -> page."""

    uri: str
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    problem: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The outcome in one line for the terminal."""
        if self.problem:
            return f"mlflow  {self.uri}: {self.problem}; the ledger has everything, `semray sync` catches up"
        if not self.new + self.updated:
            return f"mlflow  {self.uri}: up to date"
        return f"mlflow  {self.uri}: {self.new} new, {self.updated} updated, {self.unchanged} unchanged"


def default_uri(ledger: str) -> str:
    """$MLFLOW_TRACKING_URI, else mlflow.db beside a local ledger, or in this folder when the ledger is remote."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    return f"sqlite:///{beside(ledger).absolute() / 'mlflow.db'}"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """What is to stand in an experiment: a parent, which may name the pages of its children, and the children."""

    experiment: str
    note: str
    parent: Callable[[Mapping[str, str]], Planned]
    children: Callable[[], Sequence[Planned]]


def sync(findings: Findings, ledger: Ledger, uri: str | None = None) -> SyncReport:
    """Bring MLflow up to the findings. Never raises for MLflow's sake: what went wrong is in `problem`."""
    tree = Tree(
        experiment=findings.study,
        note=findings.question,
        parent=partial(planned_study, findings),
        children=partial(planned, findings, ledger),
    )
    return mirror(tree, uri or default_uri(ledger.url))


def mirror(tree: Tree, uri: str) -> SyncReport:
    """Bring MLflow up to a tree, adding nothing that is there. What went wrong is in `problem`."""
    started = time.monotonic()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    counts, links, problem = {"new": 0, "updated": 0, "unchanged": 0}, {}, ""
    with _quiet():
        try:
            with _alone(uri, tree.experiment):
                links = _mirror(tree, uri, counts)
        except _outside_errors() as error:
            problem = _reason(error)
    return SyncReport(uri=shown(uri), problem=problem, links=links, seconds=time.monotonic() - started, **counts)


def _mirror(tree: Tree, uri: str, counts: dict[str, int]) -> dict[str, str]:
    """Fill `counts` as it goes, so that they stand when the server goes away midway. Returns the links."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = _experiment(client, tree, uri)
    first = tree.parent({})
    parent = next(iter(_search(client, experiment, f"tags.`{KEY}` = '{first.key}'")), None)
    whole = parent is not None and parent.data.tags.get(DIGEST) == first.digest
    if whole and not uri.startswith("http"):
        counts["unchanged"] += 1
        return {}
    existing = {run.data.tags[KEY]: run for run in _search(client, experiment, f"tags.`{KEY}` != ''")}
    if parent is None:
        parent = client.create_run(experiment, run_name=tree.experiment, tags=_birth(first, None))
    children = {
        plan.key: _put(client, experiment, plan, existing.get(plan.key), parent.info.run_id, counts)
        for plan in tree.children()
    }
    links = _links(uri, experiment, children)
    if not whole:
        write_entry(client, parent, first.digest, tree.parent(links).build())
        counts["updated" if DIGEST in parent.data.tags else "new"] += 1
    return links


def _experiment(client: MlflowClient, tree: Tree, uri: str) -> str:
    """The study's experiment, created on first sight; a local database keeps its artifacts beside itself."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(tree.experiment)
    if found is None:
        place = None
        if uri.startswith("sqlite:///"):
            place = (
                Path(uri.removeprefix("sqlite:///")).absolute().parent / "mlartifacts" / tree.experiment
            ).as_uri()
        return client.create_experiment(
            tree.experiment, artifact_location=place, tags={"mlflow.note.content": tree.note}
        )
    if found.lifecycle_stage != "active":
        raise MlflowException(
            f"the experiment {tree.experiment} was deleted there; restore it or delete it for good"
        )
    return found.experiment_id


def _search(client: MlflowClient, experiment: str, condition: str) -> list[TrackedRun]:
    runs: list[TrackedRun] = []
    page = client.search_runs([experiment], condition, max_results=1000)
    runs += page
    while page.token:
        page = client.search_runs([experiment], condition, max_results=1000, page_token=page.token)
        runs += page
    return runs


def _put(
    client: MlflowClient,
    experiment: str,
    plan: Planned,
    run: TrackedRun | None,
    parent: str,
    counts: dict[str, int],
) -> str:
    """Make one child whole; returns its MLflow id. A run half written by a sync that died is written again."""
    if run is not None and run.data.tags.get(PARENT) != parent:
        client.set_tag(
            run.info.run_id, PARENT, parent
        )  # the study was revised: its runs follow the newest revision
    if run is not None and run.data.tags.get(DIGEST) == plan.digest:
        counts["unchanged"] += 1
        return run.info.run_id
    entry = plan.build()
    if run is not None and not _continues(run, entry):
        _retire(client, run)
        run = None
    counts["new" if run is None else "updated"] += 1
    if run is None:
        run = client.create_run(experiment, run_name=entry.name, tags=_birth(plan, parent))
    write_entry(client, run, plan.digest, entry)
    return run.info.run_id


def _birth(plan: Planned, parent: str | None) -> dict[str, str]:
    """Tags a run is created with, so that it is found again whatever happens next."""
    tags = {KEY: plan.key, KIND: plan.kind, "mlflow.source.name": "semray"}
    return tags if parent is None else {**tags, PARENT: parent}


def _continues(run: TrackedRun, entry: Entry) -> bool:
    """Whether all that was logged still holds; metric points in MLflow cannot be taken back."""
    logged = json.loads(run.data.tags.get(EVIDENCE, "{}"))
    return all(entry.evidence.get(name) == value for name, value in logged.items())


def _retire(client: MlflowClient, run: TrackedRun) -> None:
    """Keep an outdated run for the record, out of the way of filters and of the next sync."""
    key = f"superseded/{run.info.run_id}"
    for tag, value in (
        (KEY, key),
        ("verdict", "superseded"),
        ("mlflow.runName", f"{run.info.run_name} (superseded)"),
    ):
        client.set_tag(run.info.run_id, tag, value)


def _links(uri: str, experiment: str, children: Mapping[str, str]) -> dict[str, str]:
    """Run id -> the page of its MLflow run; only a server has pages."""
    if not uri.startswith("http"):
        return {}
    page = f"{shown(uri).rstrip('/')}/#/experiments/{experiment}/runs/"
    return {key.rsplit("/", 1)[1]: page + run_id for key, run_id in children.items() if key.startswith("run/")}


def shown(uri: str) -> str:
    """The URI without user and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", uri)


def _reason(error: Exception) -> str:
    """The last cause, in one line and without secrets."""
    text = shown(str(error)).strip() or type(error).__name__
    if "Max retries exceeded" in text or "Connection" in type(error).__name__:
        return "the server does not answer"
    return text.splitlines()[0][:200]


def _outside_errors() -> tuple[type[Exception], ...]:
    """What MLflow, its database, the network, the disk or an object store raises, or a driver that is not
    installed. Anything else would be our mistake."""
    from alembic.util import CommandError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    store: Any = sys.modules.get("botocore.exceptions")
    of_store = (store.BotoCoreError, store.ClientError) if store else ()
    return (MlflowException, SQLAlchemyError, CommandError, ImportError, OSError, *of_store)


@contextmanager
def _quiet() -> Iterator[None]:
    """MLflow's migrations and urllib3's retries are their own affair and stay off the terminal."""
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


@contextmanager
def _alone(uri: str, study: str) -> Iterator[None]:
    """One sync of a study at a time on this machine: MLflow cannot look up and create a run in one step.

    The lock lies in the user's own cache, where nobody else can plant a link under its name. Raises TimeoutError
    when another sync does not end.
    """
    name = hashlib.sha256(f"{uri}|{study}".encode()).hexdigest()[:16]
    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / f"sync-{name}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(lock)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(f"another sync of this study has not ended in {LOCK_SECONDS} s") from None
            time.sleep(0.1)
