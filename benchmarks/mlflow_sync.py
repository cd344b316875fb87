"""What MLflow costs: 100 and 1,000 runs with curves of 500 steps into SQLite, and the same again with nothing new.

    python benchmarks/mlflow_sync.py [--seeds 33 333]

Three trained arms on so many seeds, one untrained arm and five claims, with made-up scores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mlflow import MlflowClient  # noqa: E402

from orchestration.ledger.ledger import Ledger  # noqa: E402
from orchestration.tracking.sync import sync  # noqa: E402
from tests import finished_study  # noqa: E402

STEPS, PER_RUN, AGAIN = 500, 0.15, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[33, 333])
    for settings in finished_study.ARMS.values():
        settings["steps"] = STEPS if settings["train"] else 0
    rows = [row for seeds in parser.parse_args().seeds for row in synced(seeds)]
    notes = [
        f"Those runs that train have curves of {STEPS} steps. The report, its plots and those of the claims are "
        "part of a sync of what is new; the tables of the database are made before.",
        f"Asked: {PER_RUN} CPU seconds a run at most, and {AGAIN:g} s with nothing new.",
    ]
    save("mlflow_sync", "A study into MLflow", rows, notes, packages=("mlflow", "sqlalchemy"))


def synced(seeds: int) -> Iterator[dict[str, Any]]:
    """A row for each of two syncs of the study with so many seeds, into a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, uri = Ledger(f"{folder}/ledger"), f"sqlite:///{folder}/mlflow.db"
        findings = finished_study.findings_of(ledger, seeds)
        MlflowClient(tracking_uri=uri).search_experiments()  # the tables of a new database, once
        for name in ("all new", "nothing new"):
            cpu, wall = time.process_time(), time.perf_counter()
            done = sync(findings, ledger, uri)
            spent = time.process_time() - cpu
            assert not done.problem, done.problem
            yield {
                "runs": len(findings.runs),
                "claims": len(findings.findings),
                "sync": name,
                "CPU, seconds": round(spent, 2),
                "CPU, seconds a run": round(spent / len(findings.runs), 4),
                "wall, seconds": round(time.perf_counter() - wall, 2),
            }


if __name__ == "__main__":
    main()
