"""Building the concept corpus from WordNet, with the negatives of all five rules, and loading it again.

    python benchmarks/corpus_build.py

Targets: at most 60 s and 1 GiB for the build on two cores, 1 s for the fingerprint, 2 s for a load from the cache.
"""

from __future__ import annotations

from builds import measure

LOAD = """
from corpora.concept.corpus import fingerprint, load
from corpora.concept.data import ConceptData
answer = {"fingerprint": fingerprint, "load": load}[sys.argv[1]](ConceptData())
"""
ROWS = """
    rows = {"texts": len(answer.texts), "syn": len(answer.syn), "t2d": len(answer.t2d)}
    rows["negatives"] = len(answer.negatives.rule)
"""


def main() -> None:
    measure(
        "corpus_build",
        "The concept corpus from WordNet 3.0",
        load=LOAD,
        rows=ROWS,
        told=lambda rows: [
            f"{rows['syn']:,} synonym and {rows['t2d']:,} definition rows, {rows['negatives']:,} negatives.",
            f"{rows['texts']:,} distinct texts, three held-out splits with their stress tests.",
        ],
    )


if __name__ == "__main__":
    main()
