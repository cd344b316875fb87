"""Building SPCD from SemCor 3.0 and WordNet 3.0, with its Wu-Palmer similarities, and loading it again.

    python benchmarks/spcd_build.py [FOLDER OR ARCHIVE OF SEMCOR]

Each step runs in a fresh process, so that its peak memory is its own. Target: at most 90 s for the build on two
cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from tables import save

from corpora.errors import CorpusError
from corpora.semcor_files import locate

STEP = """
import json, resource, sys, time
wall, cpu = time.perf_counter(), time.process_time()
from corpora.cale import CaleData, fingerprint, load
data = CaleData(semcor=sys.argv[2] if len(sys.argv) > 2 else None)
answer = {"fingerprint": fingerprint, "load": load}[sys.argv[1]](data)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
rows = {}
if not isinstance(answer, str):
    rows = {"occurrences": len(answer.occurrences)} | {name: len(pairs) for name, pairs in answer.pairs.items()}
    rows["digests"] = {name: whole[:16] for name, whole in answer.digests.items()}
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "rows": rows}))
"""


def main() -> None:
    try:
        locate(sys.argv[1] if len(sys.argv) > 1 else None)
    except CorpusError as missing:
        print(f"not measured: {missing}")
        return
    with tempfile.TemporaryDirectory() as cache:
        steps = [("fingerprint", "fingerprint"), ("build and load", "load"), ("load from the cache", "load")]
        measured = [(told, _measured(step, cache)) for told, step in steps]
    sizes = measured[1][1]["rows"]
    save(
        "spcd_build",
        "SPCD from SemCor 3.0",
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
            f"{sizes['occurrences']:,} occurrences; pairs: {sizes['train']:,} train, {sizes['val']:,} val, "
            f"{sizes['test']:,} test.",
            "Digests: " + ", ".join(f"{name} {digest}" for name, digest in sizes["digests"].items()) + ".",
            "One process and one thread; imports included. CPU seconds leave out the wait for a busy machine, "
            f"wall seconds do not: its load average was {os.getloadavg()[0]:.1f}.",
        ],
        packages=("pyarrow",),
    )


def _measured(step: str, cache: str) -> dict[str, Any]:
    environment = os.environ | {"SEMRAY_CACHE": cache}
    done = subprocess.run(
        [sys.executable, "-c", STEP, step, *sys.argv[1:2]],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
