"""How long a corpus takes to build and to load: what the benchmarks of the families' corpora share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from tables import save

STEP = """
import json, resource, sys, time
wall, cpu = time.perf_counter(), time.process_time()
{load}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
rows = {{}}
if not isinstance(answer, str):
{rows}
print(json.dumps({{"wall": wall, "cpu": cpu, "peak": peak, "rows": rows}}))
"""


def measure(
    name: str,
    title: str,
    *,
    load: str,
    rows: str,
    told: Callable[[dict[str, Any]], Sequence[str]],
    arguments: Sequence[str] = (),
) -> None:
    """Time fingerprint, build and load from the cache, each in a fresh process so that its peak memory is its own.

    load: statements that set `answer` to what sys.argv[1] names, "fingerprint" or "load"; sys.argv[2:] are the
    arguments. rows: indented statements that fill `rows` from a corpus; told(rows) gives the notes about it.
    """
    step = STEP.format(load=load.strip(), rows=rows.strip("\n"))
    with tempfile.TemporaryDirectory() as cache:
        steps = [("fingerprint", "fingerprint"), ("build and load", "load"), ("load from the cache", "load")]
        measured = [(words, _measured(step, [what, *arguments], cache)) for words, what in steps]
    save(
        name,
        title,
        [
            {
                "step": words,
                "wall, seconds": round(found["wall"], 2),
                "CPU, seconds": round(found["cpu"], 2),
                "peak memory, GiB": round(found["peak"], 2),
            }
            for words, found in measured
        ],
        [
            *told(measured[1][1]["rows"]),
            "One process and one thread; imports included. CPU seconds leave out the wait for a busy machine, "
            f"wall seconds do not: its load average was {os.getloadavg()[0]:.1f}.",
        ],
        packages=("pyarrow",),
    )


def _measured(step: str, arguments: Sequence[str], cache: str) -> dict[str, Any]:
    environment = os.environ | {"SEMRAY_CACHE": cache}
    done = subprocess.run(
        [sys.executable, "-c", step, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
