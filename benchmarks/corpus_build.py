"""Building the concept corpus from WordNet, with the negatives of all five rules, and loading it again.

    python benchmarks/corpus_build.py

Each step runs in a fresh process, so that its peak memory is its own. Targets: at most 60 s and 1 GiB for the
build on two cores, 1 s for the fingerprint, 2 s for a load from the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from tables import save

STEP = """
import json, resource, sys, time
wall, cpu = time.perf_counter(), time.process_time()
from corpora.concept import ConceptData, fingerprint, load
answer = {"fingerprint": fingerprint, "load": load}[sys.argv[1]](ConceptData())
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
rows = {}
if not isinstance(answer, str):
    rows = {"texts": len(answer.texts), "syn": len(answer.syn), "t2d": len(answer.t2d)}
    rows["negatives"] = len(answer.negatives.rule)
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "rows": rows}))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        steps = [("fingerprint", "fingerprint"), ("build and load", "load"), ("load from the cache", "load")]
        measured = [(told, _measured(step, cache)) for told, step in steps]
    sizes = measured[1][1]["rows"]
    save(
        "corpus_build",
        "The concept corpus from WordNet 3.0",
        [
            {
                "step": told,
                "wall, seconds": round(step["wall"], 2),
                "CPU, seconds": round(step["cpu"], 2),
                "peak memory, GiB": round(step["peak"], 2),
            }
            for told, step in measured
        ],
        [
            f"{sizes['syn']:,} synonym and {sizes['t2d']:,} definition rows, {sizes['negatives']:,} negatives.",
            f"{sizes['texts']:,} distinct texts, three held-out splits with their stress tests.",
            "One process and one thread; imports included. CPU seconds leave out the wait for a busy machine, "
            f"wall seconds do not: its load average was {os.getloadavg()[0]:.1f}.",
        ],
        packages=("pyarrow",),
    )


def _measured(step: str, cache: str) -> dict[str, Any]:
    environment = os.environ | {"SEMRAY_CACHE": cache}
    done = subprocess.run(
        [sys.executable, "-c", STEP, step], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
