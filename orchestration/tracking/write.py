"""Writes one entry into MLflow: dataset, files, model, points, parameters, tags, and last the digest."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.study.names import cut, printable
from orchestration.tracking.entries import Entry
from orchestration.tracking.model import model_files

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as TrackedRun

DIGEST, EVIDENCE = "semray.digest", "semray.evidence"
LONGEST_NAME = 250  # what fits into MLflow's databases
TAG_LETTERS = 5000  # of a tag's value; every store of MLflow keeps so many


def write_entry(client: MlflowClient, run: TrackedRun, digest: str, entry: Entry) -> None:
    """Write everything of an entry, and last the digest, which marks it as complete.

    The time of each point is the start of its run. So a point written twice is stored once: MLflow drops a point
    that is equal in name, value, step and time.
    """
    from mlflow.entities import Metric, Param, RunTag

    run_id, born, now = run.info.run_id, run.info.start_time, int(time.time() * 1000)
    if entry.dataset is not None:
        _log_dataset(client, run_id, entry.dataset)
    if entry.files or entry.tables:
        _log_files(client, run_id, entry)
    if entry.model is not None:
        _log_model(client, run, entry.name, entry.model)
    points = [Metric(name, value, born, step) for name, value, step in entry.points]
    shown = {name: str(value) for name, value in run.data.metrics.items()}  # as text, in which NaN equals NaN
    latest = {name: value for name, value in entry.latest.items() if shown.get(name) != str(value)}
    points += [Metric(name, value, now, entry.latest_step) for name, value in latest.items()]
    params = [Param(name, value) for name, value in entry.params.items() if name not in run.data.params]
    tags = as_tags({**entry.tags, "mlflow.runName": cut(entry.name, LONGEST_NAME)})
    if entry.evidence:
        tags |= evidence_tags(entry.evidence)
    if entry.tables:
        tags["mlflow.loggedArtifacts"] = json.dumps([{"path": name, "type": "table"} for name in entry.tables])
    new = [RunTag(name, value) for name, value in tags.items() if run.data.tags.get(name) != value]
    client.set_terminated(run_id, entry.status, end_time=milliseconds(entry.ended))
    # MLflow's client splits the first, of which mostly nothing is left, but not the last, which has the digest
    client.log_batch(run_id, metrics=points[:-800], params=params[:-90], tags=new[:-90])
    last = [*new[-90:], RunTag(DIGEST, digest)]
    client.log_batch(run_id, metrics=points[-800:], params=params[-90:], tags=last)


def evidence_tags(evidence: Mapping[str, str]) -> dict[str, str]:
    """The evidence of an entry as tags; several, since MLflow would cut the tag of some hundred seeds."""
    text = json.dumps(dict(evidence))
    parts = [text[begin : begin + TAG_LETTERS] for begin in range(0, len(text), TAG_LETTERS)]
    return {f"{EVIDENCE}.{number}" if number else EVIDENCE: part for number, part in enumerate(parts)}


def evidence_in(tags: Mapping[str, str]) -> dict[str, str] | None:
    """The evidence in the tags of an entry; None if unreadable, as a person may have edited them."""
    parts = [tags.get(EVIDENCE, "{}")]
    while (part := tags.get(f"{EVIDENCE}.{len(parts)}")) is not None:
        parts.append(part)
    with suppress(ValueError, RecursionError):
        found = json.loads("".join(parts))
        if isinstance(found, dict):
            return found
    return None


def as_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags, in characters that every page and terminal can show."""
    return {name: printable(value, keep="\n") for name, value in tags.items()}


def milliseconds(seconds: float | None) -> int | None:
    """Unix time in seconds -> MLflow's whole milliseconds."""
    return None if seconds is None else round(1000 * seconds)


def _log_dataset(client: MlflowClient, run_id: str, dataset: Mapping[str, str]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    described = Dataset(
        name=dataset["name"], digest=dataset["digest"], source_type="semray", source=dataset["source"]
    )
    client.log_inputs(run_id, [DatasetInput(described, [InputTag("mlflow.data.context", dataset["context"])])])


def _log_files(client: MlflowClient, run_id: str, entry: Entry) -> None:
    """All artifacts in one upload. Tables have the form in which MLflow shows them as tables."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in entry.files.items():
            Path(folder, name).write_bytes(content)
        for name, (head, rows) in entry.tables.items():
            Path(folder, name).write_text(json.dumps({"columns": list(head), "data": [list(row) for row in rows]}))
        client.log_artifacts(run_id, folder)


def _log_model(client: MlflowClient, run: TrackedRun, name: str, model: Mapping[str, str]) -> None:
    """Log a model that reads its weights from the ledger: a few hundred bytes for any encoder."""
    from mlflow.entities import LoggedModelOutput

    if run.outputs is not None and run.outputs.model_outputs:
        return
    with tempfile.TemporaryDirectory() as folder:
        if not model_files(Path(folder), model["ledger"], model["run"]):
            return
        run_id, experiment = run.info.run_id, run.info.experiment_id
        begun = client.search_logged_models([experiment], f"source_run_id = '{run_id}'")
        made = next(iter(begun), None) or client.create_logged_model(
            experiment,
            name=re.sub(r"[/:.%\"'\s]+", "-", cut(printable(name), LONGEST_NAME)),
            source_run_id=run_id,
            tags={"ledger_id": model["run"]},
        )
        client.log_model_artifacts(made.model_id, folder)
        client.finalize_logged_model(made.model_id, "READY")
        client.log_outputs(run_id, [LoggedModelOutput(made.model_id, step=0)])
