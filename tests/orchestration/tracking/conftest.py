"""An empty MLflow of a test's own, and studies to mirror."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.tracking.sync import sync
from orchestration.verdicts.findings import Findings
from tests.finished_study import CLAIMS, findings_of


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, created once: that takes longer than a sync."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="session")
def new_uri(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """An MLflow of its own, empty, in a folder of its own."""

    def make() -> str:
        path = tmp_path_factory.mktemp("mirror") / "mlflow.db"
        shutil.copy(empty_database, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture
def uri(new_uri: Callable[[], str]) -> str:
    return new_uri()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Findings]:
    """25 runs, of which 23 finished, and 5 comparisons."""
    ledger = Ledger(tmp_path_factory.mktemp("study") / "ledger")
    return ledger, findings_of(ledger)


@pytest.fixture(scope="session")
def mirrored(study: tuple[Ledger, Findings], new_uri: Callable[[], str]) -> str:
    """The study in MLflow; tests only look at it."""
    uri = new_uri()
    done = sync(study[1], study[0], uri)
    assert (done.problem, done.new, done.updated) == (
        "",
        1 + 24 + 5,
        0,
    )  # study; 23 finished, 1 failed; comparisons
    return uri


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Findings]:
    """10 runs, one comparison: 12 entries in MLflow."""
    ledger = Ledger(tmp_path_factory.mktemp("small") / "ledger")
    return ledger, findings_of(ledger, 3, CLAIMS[:1])
