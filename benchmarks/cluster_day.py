"""What a day on a cluster of three hosts takes, step by step: the end-to-end test, with its result kept.

    python benchmarks/cluster_day.py

The hosts are namespaces of this machine, each with its own sshd; they share its cores, so the times say that it
works and where time goes, not how fast a cluster is. Needs root on Linux, iproute2, openssh-server and rsync.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]


def outcomes(test: str) -> tuple[list[dict[str, Any]], int]:
    """A row per step of an end-to-end test, and pytest's exit code. seconds: with what the step set up first."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        words = [sys.executable, "-m", "pytest", "-q", str(ROOT / test), f"--junitxml={told}"]
        code = subprocess.run(words, cwd=ROOT).returncode
        cases = list(ElementTree.parse(told).getroot().iter("testcase"))
    rows = []
    for case in cases:
        bad = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
        step = case.attrib["name"].removeprefix("test_").replace("_", " ")
        rows.append({"step": step, "outcome": bad[0] if bad else "passed", "seconds": float(case.attrib["time"])})
    return rows, code


def main() -> int:
    rows, code = outcomes("tests/e2e/test_cluster_day.py")
    if all(row["outcome"] == "skipped" for row in rows):
        return code  # not possible here: an earlier result stands
    notes = [
        "Three hosts of one CPU each on the cores of one machine: times are for orientation.",
        "The study has 7 runs of a two-layer encoder; most of its time is the start of a lane on every host.",
        "After the head's GCS was killed: the time until the job was given up, `ray up`, and the rest of "
        "the study.",
    ]
    save("cluster_day", "A day on a cluster of three hosts", rows, notes, packages=("ray", "torch"))
    return code


if __name__ == "__main__":
    sys.exit(main())
