"""What a driver spends on a run: pooled lanes of many nodes with runs that take no time, its ledger on a tmpfs.

python benchmarks/driver.py [--runs N] [--lanes N ...] [--folder PLACE] [--keep NAME]

Lanes are threads that stage made-up results at once (`tests/simulated_lanes.py`); the pool that looks up, hands
out, commits and forgets is the real one, and so is the ledger. Counted is the CPU time of the driver's own thread:
runs a second are what it keeps up with, on a machine however busy, where lanes are processes of their own. What
Ray takes to say which lanes have answered is not in it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from orchestration.lanes.events import Event, RunFinished  # noqa: E402
from orchestration.lanes.pooled.pool import Pool  # noqa: E402
from orchestration.ledger.ledger import Ledger  # noqa: E402
from orchestration.study.run import Job  # noqa: E402
from tests.finished_study import make_run  # noqa: E402
from tests.simulated_lanes import SimulatedKind, without_ray  # noqa: E402

PARTS = 4  # the runs of a study in the order in which they finish: what the last cost against the first


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20_000)
    options.add_argument("--lanes", type=int, nargs="*", default=[64, 512], help="64 a node")
    options.add_argument("--folder", default="/dev/shm", help="a tmpfs")
    options.add_argument("--keep", default="driver", help="name of the results")
    given = options.parse_args()
    rows = [row for lanes in given.lanes for row in driven(lanes, given.runs, Path(given.folder))]
    notes = [
        "A run is trained and scored on one task: two entries. Runs a second: by the driver's CPU time alone.",
        "Memory: how much more the process holds than before that part's first run, lanes with their threads too.",
        f"Load average of the machine {os.getloadavg()[0]:.1f}.",
    ]
    save(given.keep, "The driver of many lanes", rows, notes, packages=("ray",))


def driven(lanes: int, runs: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each part of the runs: what the driver spent on it, and what memory it took."""
    heard = [(0.0, 0.0, 0.0)]
    finished = itertools.count(1)

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished) and next(finished) % max(1, runs // PARTS) == 0:
            heard.append((time.thread_time(), time.perf_counter(), _held()))

    with tempfile.TemporaryDirectory(dir=folder) as place, without_ray():
        ledger, kind = Ledger(place), SimulatedKind(0.0)
        jobs = [Job(runs=(replace(make_run("B1", seed), tasks={"t2d": "r1"}),)) for seed in range(runs)]
        with ledger.drive("study"):
            pool = Pool(kind.start, ledger, hear, threading.Event(), lease_seconds=600, stall_seconds=6000)
            heard[0] = (time.thread_time(), time.perf_counter(), _held())
            outcome = pool.run(jobs, lanes=lanes, tries=1)
    assert len(outcome.finished) == runs
    return [
        {
            "lanes": lanes,
            "runs": f"{number * runs // PARTS:,} to {(number + 1) * runs // PARTS:,}",
            "driver CPU ms a run": 1000 * (after[0] - before[0]) / (runs // PARTS),
            "runs a second": round((runs // PARTS) / (after[0] - before[0])),
            "with the lanes in one process": round((runs // PARTS) / (after[1] - before[1])),
            "memory, MiB more": round(after[2] - before[2], 1),
        }
        for number, (before, after) in enumerate(itertools.pairwise(heard))
    ]


def _held() -> float:
    """MiB that this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
