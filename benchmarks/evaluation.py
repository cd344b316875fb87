"""How long a run's evaluation takes: STS on one fp32 core, when nothing is known of its weights and when all is.

    SEMRAY_DATA=FOLDER python benchmarks/evaluation.py

The sets of `sts` that are at hand, filled up with other STS sets to the size of all seven, about 19,000 distinct
sentences. The encoder is all-MiniLM-L6-v2; a trained one of its size costs the same. CPU time, since a shared
machine disturbs wall time more.
"""

from __future__ import annotations

import os
import tempfile
import time

import torch
from tables import save

from corpora.store.errors import CorpusError
from evaluators.tasks import suite
from evaluators.tasks.task import Task, evaluate
from trainers.encoders.backbones import resolve_backbone
from trainers.encoders.encoder import Encoder
from trainers.encoders.together import reading_together
from trainers.engine.world import World

SENTENCES = 19_000
OTHERS = ("sts/SICK-R/all", "dev/sts/STS-B", "dev/paws")


def at_hand() -> tuple[list[Task], int]:
    """Tasks whose rows are here, until they hold enough, and how many distinct sentences they hold."""
    table, found, texts = suite.tasks(os.environ.get("SEMRAY_DATA")), [], set()
    for name in (*suite.GROUPS["sts"], *OTHERS):
        try:
            rows = table[name].benchmark.load()
        except CorpusError:
            continue
        if name in OTHERS and len(texts) >= SENTENCES:
            break
        texts |= set(table[name].texts(rows))
        found.append(table[name])
    return found, len(texts)


def measured(tasks: list[Task]) -> dict[str, float]:
    """One evaluation by a process that has just opened the encoder."""
    encoder = Encoder.load(resolve_backbone("all-MiniLM-L6-v2"))
    began, wall = time.process_time(), time.perf_counter()
    with reading_together(encoder, World()):
        scores = [score for _, scores in evaluate(tasks, encoder.readers) for score in scores]
    assert all(-1 <= score.value <= 1 for score in scores)
    return {"CPU s": time.process_time() - began, "wall s": time.perf_counter() - wall}


def main() -> None:
    torch.set_num_threads(1)
    tasks, sentences = at_hand()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SEMRAY_CACHE"] = folder
        rows = [
            {"evaluation": words, "distinct sentences": sentences, **measured(tasks)}
            for words in ("nothing known", "the same weights again")
        ]
    save(
        "evaluation",
        "Evaluation of a run on STS",
        rows,
        [
            f"tasks: {', '.join(task.name for task in tasks)}",
            "all-MiniLM-L6-v2, one thread, float32, packed; encoding, scores and keeping the vectors included",
        ],
        packages=("torch", "transformers"),
    )


if __name__ == "__main__":
    main()
