"""Mirrors the ledger in MLflow. Only the driver writes there, and only by this module.

A study is an experiment with one parent run, which stays as the study grows, and a child run for every run and
every comparison. To sync again adds nothing. The ledger is the source of truth; studies go on without MLflow.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from corpora.store.cache import cache_folder
from orchestration.report.markup import marked_down
from orchestration.study.names import cut
from orchestration.tracking import pages
from orchestration.tracking.artifacts import artifacts_beside, follow
from orchestration.tracking.entries import (
    COMPARISONS,
    STUDY_KEY,
    Entry,
    Planned,
    claimed_metrics,
    planned,
    planned_study,
)
from orchestration.tracking.reaching import (
    database_of,
    default_uri,
    mlflow_settled,
    outside_errors,
    reason,
    refuse_unwritable,
    shown,
)
from orchestration.tracking.write import DIGEST, LONGEST_NAME, as_tags, evidence_in, milliseconds, write_entry

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as TrackedRun

    from orchestration.ledger.ledger import Ledger
    from orchestration.verdicts.findings import Findings

KEY, KIND = "semray.run_key", "semray.kind"
ACTIVE, DELETED = 1, 2  # values of MLflow's ViewType, whose import is slow
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
LOCK_SECONDS = 600  # a sync waits so long at most for another one of its study


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The outcome of one sync. problem: why MLflow does not match the ledger, or "". links: run id -> page.

    A sync does not check that artifacts and models are still in MLflow, nor for runs deleted for good.
    """

    uri: str
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    restored: int = 0
    problem: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The outcome in one line for the terminal."""
        if self.problem:
            return f"mlflow  {self.uri}: {self.problem}; the ledger has everything, `semray sync` catches up"
        if not self.new + self.updated + self.restored:
            return f"mlflow  {self.uri}: up to date"
        restored = f", {self.restored} restored" if self.restored else ""
        return f"mlflow  {self.uri}: {self.new} new, {self.updated} updated, {self.unchanged} unchanged{restored}"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The wanted content of an experiment: a parent, which may link to its children's pages, and the children.

    began: Unix time when the first child began. view: MLflow's table view. before: key prefix of parents that an
    earlier semray wrote. withdrawn: key prefix of children that are retired when they are not planned any more; ""
    for none.
    """

    experiment: str
    note: str
    began: float | None = None
    view: str = ""
    before: str = ""
    withdrawn: str = ""
    parent: Callable[[Mapping[str, str]], Planned]
    children: Callable[[], Sequence[Planned]]


def sync(findings: Findings, ledger: Ledger, uri: str | None = None) -> SyncReport:
    """Bring MLflow up to date with the findings. An error of MLflow is not raised, but put into `problem`."""
    tree = Tree(
        experiment=findings.study,
        note=findings.question,
        began=min((row.began for row in findings.runs if row.began is not None), default=None),
        view=pages.view(claimed_metrics(findings)),
        before=f"{STUDY_KEY}/",
        withdrawn=COMPARISONS,
        parent=partial(planned_study, findings),
        children=partial(planned, findings, ledger),
    )
    return mirror(tree, uri or default_uri(ledger.url))


def mirror(tree: Tree, uri: str) -> SyncReport:
    """Bring MLflow up to date with a tree, without duplicates. An error of MLflow is put into `problem`."""
    started = time.monotonic()
    counts, links, problem = dict.fromkeys(("new", "updated", "unchanged", "restored"), 0), {}, ""
    with mlflow_settled():
        try:
            refuse_unwritable(uri)
            with _locked(uri, tree.experiment):
                links = _mirror(tree, uri, counts)
        except outside_errors() as error:
            problem = reason(error, uri)
    return SyncReport(uri=shown(uri), problem=problem, links=links, seconds=time.monotonic() - started, **counts)


def _mirror(tree: Tree, uri: str, counts: dict[str, int]) -> dict[str, str]:
    """Write the tree, and return the links. `counts` grow on the way, so they hold if the server goes away."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = _experiment(client, tree, uri)
    first, plans = tree.parent({}), cache(tree.children)
    if deleted := _by_key(client, experiment, DELETED):
        _restore(client, experiment, deleted, {plan.key for plan in (first, *plans())}, counts)
    parent = next(iter(_search(client, experiment, f"tags.`{KEY}` = '{first.key}'")), None)
    if parent is None and tree.before:
        parent = _former_parent(client, experiment, tree.before)
    complete = parent is not None and parent.data.tags.get(DIGEST) == first.digest
    if complete and not uri.startswith("http"):
        counts["unchanged"] += 1  # its children too; to read them all is slow
        return {}
    existing = _by_key(client, experiment)
    if parent is None:
        parent = client.create_run(
            experiment, start_time=milliseconds(tree.began), run_name=tree.experiment, tags=_key_tags(first, None)
        )
    children: dict[str, str] = {}
    for plan in plans():
        run = existing.get(plan.key)
        children[plan.key] = _put(client, experiment, plan, run, parent.info.run_id, counts, children)
    for key, run in existing.items():
        if tree.withdrawn and key.startswith(tree.withdrawn) and key not in children:
            _retire(client, run)
    links = _links(uri, experiment, children)
    if not complete or counts["new"] + counts["updated"]:
        if tree.view:
            client.set_experiment_tag(experiment, pages.VIEW_TAG, tree.view)
        entry = tree.parent(links).build()
        tags = {**entry.tags, KEY: first.key, NOTE: _note(entry, experiment, parent.info.run_id, children)}
        write_entry(client, parent, first.digest, replace(entry, tags=tags))
        counts["updated" if DIGEST in parent.data.tags else "new"] += 1
    return links


def _restore(
    client: MlflowClient,
    experiment: str,
    deleted: Mapping[str, TrackedRun],
    wanted: Set[str],
    counts: dict[str, int],
) -> None:
    """Restore wanted runs that a person deleted: a new run would be a duplicate once the person restores them."""
    missing = wanted & deleted.keys()
    if missing:  # only then, as reading all active runs is slow
        missing -= _by_key(client, experiment).keys()
    for key in sorted(missing):
        client.restore_run(deleted[key].info.run_id)
        counts["restored"] += 1


def _former_parent(client: MlflowClient, experiment: str, before: str) -> TrackedRun | None:
    """The newest parent of those that an earlier semray wrote, one for each revision; retires the others."""
    found = _search(client, experiment, f"tags.`{KEY}` LIKE '{before}%'")
    for run in found[1:]:
        _retire(client, run)
    return found[0] if found else None


def _experiment(client: MlflowClient, tree: Tree, uri: str) -> str:
    """The id of the study's experiment, created if missing. Artifacts of a local database lie beside it."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(tree.experiment)
    if found is None:
        place = None
        if (database := database_of(uri)) is not None:
            place = artifacts_beside(database, tree.experiment)
        made = client.create_experiment(tree.experiment, artifact_location=place)
        table = f"\n\n[Verdicts and claimed metrics]({pages.experiment(made)})" if tree.view else ""
        client.set_experiment_tag(made, NOTE, marked_down(tree.note) + table)
        return made
    if found.lifecycle_stage != "active":
        raise MlflowException(
            f"the experiment {tree.experiment} was deleted there; restore it or delete it for good"
        )
    follow(uri, found)
    return found.experiment_id


def _by_key(client: MlflowClient, experiment: str, which: int = ACTIVE) -> dict[str, TrackedRun]:
    return {run.data.tags[KEY]: run for run in _search(client, experiment, f"tags.`{KEY}` != ''", which)}


def _search(client: MlflowClient, experiment: str, condition: str, which: int = ACTIVE) -> list[TrackedRun]:
    runs: list[TrackedRun] = []
    page = client.search_runs([experiment], condition, which, max_results=1000)
    runs += page
    while page.token:
        page = client.search_runs([experiment], condition, which, max_results=1000, page_token=page.token)
        runs += page
    return runs


def _put(
    client: MlflowClient,
    experiment: str,
    plan: Planned,
    run: TrackedRun | None,
    parent: str,
    counts: dict[str, int],
    known: Mapping[str, str],
) -> str:
    """Write one child, unless it is up to date; returns its MLflow id. A half-written run is written again.

    known: key -> MLflow id of the children before it.
    """
    own = _key_tags(plan, parent)
    if run is not None:
        for name, value in sorted(own.items() - run.data.tags.items()):
            client.set_tag(run.info.run_id, name, value)  # another place, or a parent of an earlier semray
    if run is not None and run.data.tags.get(DIGEST) == plan.digest:
        counts["unchanged"] += 1
        return run.info.run_id
    entry = plan.build()
    if run is not None and not _continues(run, entry):
        _retire(client, run)
        run = None
    counts["new" if run is None else "updated"] += 1
    if run is None:
        run = client.create_run(
            experiment,
            start_time=milliseconds(entry.began),
            run_name=cut(entry.name, LONGEST_NAME),
            tags={**as_tags(entry.tags), **own},
        )
    tags = {**entry.tags, NOTE: _note(entry, experiment, run.info.run_id, known)}
    write_entry(client, run, plan.digest, replace(entry, tags=tags))
    return run.info.run_id


def _note(entry: Entry, experiment: str, run: str, known: Mapping[str, str]) -> str:
    """The description of a run in Markdown: the note, pictures, and a link that compares its runs."""
    parts = [entry.note, *(f"![{name}]({pages.picture(run, name)})" for name in entry.pictures)]
    if entry.compares:
        metric, keys = entry.compares
        runs = [known[key] for key in keys if key in known]
        if 1 < len(runs) <= pages.MOST_COMPARED:
            parts.append(f"[{metric} of its {len(runs)} runs]({pages.compared(experiment, metric, runs)})")
    return "\n\n".join(parts)


def _key_tags(plan: Planned, parent: str | None) -> dict[str, str]:
    """The tags with which a run is created, so that the next sync finds it even if this one dies."""
    tags = {
        KEY: plan.key,
        KIND: plan.kind,
        "mlflow.source.name": "semray",
        PARENT: parent,
        pages.PLACE: plan.place,
    }
    return {name: value for name, value in tags.items() if value}


def _continues(run: TrackedRun, entry: Entry) -> bool:
    """Whether the entry still has all evidence that was logged: MLflow cannot remove metric points."""
    logged = evidence_in(run.data.tags)
    return logged is not None and all(entry.evidence.get(name) == value for name, value in logged.items())


def _retire(client: MlflowClient, run: TrackedRun) -> None:
    """Mark an outdated run as superseded: it stays in MLflow, but filters and the next sync skip it."""
    key = f"superseded/{run.info.run_id}"
    for tag, value in (
        (KEY, key),
        (pages.PLACE, "9"),
        ("verdict", "superseded"),
        ("mlflow.runName", f"{run.info.run_name} (superseded)"),
    ):
        client.set_tag(run.info.run_id, tag, value)


def _links(uri: str, experiment: str, children: Mapping[str, str]) -> dict[str, str]:
    """Run id -> page of its MLflow run; empty unless MLflow is a server."""
    if not uri.startswith("http"):
        return {}
    page = f"{shown(uri).rstrip('/')}/#/experiments/{experiment}/runs/"
    return {key.rsplit("/", 1)[1]: page + run_id for key, run_id in children.items() if key.startswith("run/")}


@contextmanager
def _locked(uri: str, study: str) -> Iterator[None]:
    """A lock on the syncs of a study on this machine, as MLflow cannot look up and create a run in one step.

    The lock is in the user's own cache, where nobody else can place a link. TimeoutError if another sync does not
    end.
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
