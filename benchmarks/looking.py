"""How long the commands take that only look: plan, status, why, report and verify of a finished quickstart.

python benchmarks/looking.py [--ledger LEDGER]

Without a ledger that holds the quickstart's runs, one is filled with made-up scores.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from orchestration.ledger.ledger import Ledger  # noqa: E402
from orchestration.plan.held import planned  # noqa: E402
from orchestration.reading.read_study import read_study  # noqa: E402
from tests.finished_study import fill  # noqa: E402

STUDY = ROOT / "studies" / "quickstart.yaml"
TRIES, LIMIT_SECONDS = 5, 1.5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ledger", default=None, help="one that holds the quickstart's runs")
    given = options.parse_args().ledger
    with tempfile.TemporaryDirectory() as folder:
        url = given or f"{folder}/ledger"
        ledger, study = Ledger(url), read_study(STUDY)
        if given is None:
            fill(ledger, planned(study, ledger).runs)
        plan = planned(study, ledger)
        if plan.left:
            raise SystemExit(f"{url}: {len(plan.left)} runs of {STUDY.name} are not finished")
        place, passport = [str(STUDY), "--ledger", url], f"{folder}/passport.zip"
        commands = {
            "plan": ["plan", *place],
            "status": ["status", *place],
            "why": ["why", str(STUDY), study.compare[0].claim, "--ledger", url],
            "report": ["report", *place, "--out", f"{folder}/report", "--passport", passport],
            "verify": ["verify", passport],
        }
        rows = []
        for name, words in commands.items():
            took = [seconds(words) for _ in range(TRIES)]
            wall, cpu = min(wall for wall, _ in took), min(cpu for _, cpu in took)
            rows.append({"command": name, "wall, seconds": round(wall, 2), "CPU, seconds": round(cpu, 2)})
        held = f"{len(plan.runs)} runs, " + ("as given" if given else "with made-up scores")
    notes = [
        f"Of the quickstart, finished: {held}. The whole command, interpreter and imports included, the best of "
        f"{TRIES}; load average of the machine {os.getloadavg()[0]:.1f}.",
        f"Asked of plan: under {LIMIT_SECONDS} s.",
    ]
    save("looking", "Looking at a finished study", rows, notes, packages=("pyarrow", "pydantic"))


def seconds(words: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one command in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "orchestration", *words], cwd=ROOT, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
