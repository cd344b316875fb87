"""How long whole studies take on this machine, from nothing to their verdicts, and what the verdicts are.

    SEMRAY_DATA=FOLDER python benchmarks/study_runs.py frozen_encoders defsent_quickstart
    python benchmarks/study_runs.py quickstart --precision fp32 [--code CHECKOUT]

Each study runs as a person runs it, with an empty ledger and an empty cache. CPU time is that of all its processes
as seen once a second; wall time depends on what else the machine does, so the load before is told. --precision: of
trainings, where a study leaves it to the processor. What each gave is results/study_<name>.md; its name ends in a
precision that was asked for, and in _before for a checkout of earlier code. Without names: those that the guides
call small and that need WordNet alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from tables import revision, save

ROOT = Path(__file__).resolve().parents[1]
SMALL = ("quickstart", "concept_small", "defsent_quickstart")
COMMAND = (sys.executable, "-m", "orchestration")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("studies", nargs="*", default=SMALL, help="names of studies/*.yaml")
    options.add_argument(
        "--code", type=Path, default=ROOT, help="a checkout of earlier code, with its own studies"
    )
    options.add_argument("--precision", choices=("fp32", "bf16"), help="instead of the best of this processor")
    given = options.parse_args()
    for name in given.studies:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, given.code.resolve(), given.precision, Path(folder))


def measure(name: str, code: Path, precision: str | None, folder: Path) -> None:
    """Run one study by the code of a checkout and keep what it gave."""
    study, place = str(code / "studies" / f"{name}.yaml"), ["--ledger", str(folder / "ledger")]
    if precision:
        study = str(in_precision(Path(study), precision, folder))
    own = {**os.environ, "PYTHONPATH": str(code), "SEMRAY_CACHE": str(folder / "cache")}
    load = os.getloadavg()[0]
    wall, cpu = watched([*COMMAND, "run", study, *place], own, code)
    asked = [*COMMAND, "report", study, *place, "--json"]
    said = subprocess.run(asked, cwd=code, env=own, capture_output=True, text=True, check=True)
    trainings = [path for path in (folder / "ledger").iterdir() if (path / "env.json").exists()]
    earlier = code != ROOT
    save(
        "_".join(filter(None, ("study", name, precision, "before" if earlier else None))),
        f"studies/{name}.yaml{f' in {precision}' if precision else ''}, from nothing to its verdicts",
        [row(verdict) for verdict in json.loads(said.stdout)],
        [
            *([f"By the code of {revision(code)}."] if earlier else []),
            f"{wall / 60:.1f} minutes of wall time, {cpu / 60:.1f} of CPU time; load before {load:.1f}",
            f"{len(trainings)} entries of runs; caches empty at the start",
        ],
        packages=("torch", "transformers", "ray"),
        whole={"wall minutes": wall / 60, "CPU minutes": cpu / 60},
    )


def in_precision(study: Path, precision: str, folder: Path) -> Path:
    """A copy of a study that says nothing of its resources, trained in this precision."""
    text = study.read_text()
    assert "resources:" not in text, f"{study}: says itself what it runs in"
    copy = folder / study.name
    copy.write_text(f"{text}resources: {{precision: {precision}}}\n")
    return copy


def watched(command: list[str], environment: dict[str, str], place: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a command in a place, whose packages it finds first, and of all that it starts."""
    began, seen = time.perf_counter(), dict[tuple[int, float], float]()
    process = subprocess.Popen(command, cwd=place, env=environment)
    while process.poll() is None:
        for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
            try:
                times = one.cpu_times()
                seen[one.pid, one.create_time()] = times.user + times.system
            except psutil.Error:
                continue
        time.sleep(1)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - began, sum(seen.values())


def row(verdict: dict[str, Any]) -> dict[str, Any]:
    sides = f"{verdict['treatment']} - {verdict['control']}"
    interval = [verdict[side] for side in ("ci_low", "ci_high")]
    return {
        "claim": verdict["claim"],
        "asked": f"{verdict['metric']}: {sides}, {verdict['expect']}",
        "estimate": verdict["delta_mean"],
        "95 %": "" if None in interval else f"[{interval[0]:.4f}, {interval[1]:.4f}]",
        "p, corrected": verdict["p_adjusted"],
        "verdict": verdict["words"],
    }


if __name__ == "__main__":
    main()
