"""Building SPCD from SemCor 3.0 and WordNet 3.0, with its Wu-Palmer similarities, and loading it again.

    python benchmarks/spcd_build.py [FOLDER OR ARCHIVE OF SEMCOR]

Target: at most 90 s for the build on two cores.
"""

from __future__ import annotations

import sys

from builds import measure

from corpora.sources.semcor_files import locate
from corpora.store.errors import CorpusError

LOAD = """
from corpora.cale.corpus import fingerprint, load
from corpora.cale.data import CaleData
data = CaleData(semcor=sys.argv[2] if len(sys.argv) > 2 else None)
answer = {"fingerprint": fingerprint, "load": load}[sys.argv[1]](data)
"""
ROWS = """
    rows = {"occurrences": len(answer.occurrences)} | {name: len(pairs) for name, pairs in answer.pairs.items()}
    rows["digests"] = {name: whole[:16] for name, whole in answer.digests.items()}
"""


def main() -> None:
    given = sys.argv[1:2]
    try:
        locate(*given)
    except CorpusError as missing:
        print(f"not measured: {missing}")
        return
    measure(
        "spcd_build",
        "SPCD from SemCor 3.0",
        load=LOAD,
        rows=ROWS,
        told=lambda rows: [
            f"{rows['occurrences']:,} occurrences; pairs: {rows['train']:,} train, {rows['val']:,} val, "
            f"{rows['test']:,} test.",
            "Digests: " + ", ".join(f"{name} {digest}" for name, digest in rows["digests"].items()) + ".",
        ],
        arguments=given,
    )


if __name__ == "__main__":
    main()
