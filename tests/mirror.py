"""What a test reads of a study's mirror in MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

STUDY = "concept-hypotheses"


def client(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def search(uri: str, condition: str = "") -> list[Any]:
    found = client(uri)
    experiment = found.get_experiment_by_name(STUDY)
    return list(found.search_runs([experiment.experiment_id], condition, max_results=1000))


def of_kind(uri: str, kind: str) -> list[Any]:
    return search(uri, f"tags.`semray.kind` = '{kind}'")


def everything(uri: str) -> dict[str, Any]:
    """Every row of every table and every artifact's time of writing: all that a second sync could add to."""
    database = Path(uri.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows: dict[str, Any] = {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in names
        }
    artifacts = database.parent / "mlartifacts"
    rows["artifacts"] = {str(path): path.stat().st_mtime_ns for path in artifacts.rglob("*") if path.is_file()}
    return rows


def points(uri: str) -> list[tuple[Any, ...]]:
    """(run key, metric, step, value) of every point logged for a run that counts."""
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as connection:
        return sorted(
            connection.execute(
                "SELECT tags.value, metrics.key, metrics.step, metrics.value FROM metrics JOIN tags "
                "ON tags.run_uuid = metrics.run_uuid AND tags.key = 'semray.run_key'"
            )
        )
