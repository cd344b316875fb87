"""Where the artifacts of a local database lie: beside it, also after both were moved or copied together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from orchestration.tracking.reaching import database_of

if TYPE_CHECKING:
    from mlflow.entities import Experiment

KEPT = {"experiments": "artifact_location", "runs": "artifact_uri", "logged_models": "artifact_location"}


def artifacts_beside(database: Path, experiment: str) -> str:
    """The address of the folder that holds the artifacts of an experiment."""
    return (database.parent / "mlartifacts" / experiment).as_uri()


def follow(uri: str, found: Experiment) -> None:
    """Have MLflow look for an experiment's artifacts beside its database, if it looks where that lay before.

    MLflow keeps whole paths. After a move it would show none of them and write into the folder that was left; of a
    copy, into the original's.
    """
    database = database_of(uri)
    if database is not None and came_along(found.name, found.artifact_location, database):
        _relocate(uri, found.experiment_id, found.artifact_location, artifacts_beside(database, found.name))


def came_along(experiment: str, before: str, database: Path) -> bool:
    """Whether artifacts are beside the database now and not at `before`, where MLflow looks.

    False for a place that a person chose, and while artifacts are at `before` alone. Where none are left, new ones
    belong beside the database.
    """
    now = artifacts_beside(database, experiment)
    own = now.removeprefix(database.parent.as_uri())  # /mlartifacts/STUDY
    if before == now or not (before.startswith("file:") and before.endswith(own)):
        return False
    old, new = (Path(unquote(urlsplit(place).path)) for place in (before, now))
    return not old.is_dir() or (new.is_dir() and not new.samefile(old))


def _relocate(uri: str, experiment: str, before: str, now: str) -> None:
    """Put another beginning to every place that MLflow keeps of an experiment; its client has no call for that."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import NullPool

    given = {"now": now, "before": before, "length": len(before), "experiment": int(experiment)}
    with create_engine(uri, poolclass=NullPool).begin() as database:
        for table, column in KEPT.items():
            database.execute(
                text(
                    f"UPDATE {table} SET {column} = :now || substr({column}, :length + 1) "
                    f"WHERE experiment_id = :experiment AND substr({column}, 1, :length) = :before"
                ),
                given,
            )
