"""Sentences per second of one training step: semray's B1 and the trainer of sentence-transformers, side by side.

    python benchmarks/training_throughput.py [--steps 10] [--repeats 3]

Both train all-MiniLM-L6-v2 on the same WordNet rows: a step is 16 synonym pairs and 16 (term, definition, two hard
negatives), 96 texts of at most 64 tokens, one AdamW update, one thread. The peer runs MultipleNegativesRankingLoss
on two data sets in turn and accumulates two batches per update, with its own defaults (fused AdamW, autocast).
Each has a process of its own; the peer needs the package accelerate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from steps import Clock, Interleaved, load_of_machine, one_quiet_thread, options_of, repeated, train_with_peer
from tables import save

from corpora.concept.corpus import load
from corpora.concept.data import ConceptData
from trainers.concept.settings import Settings
from trainers.concept.training import fit
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.precision import best_precision, multiplies_bf16
from trainers.engine.world import Precision, World

if TYPE_CHECKING:
    from corpora.concept.records import ConceptCorpus

BATCH, NEGATIVES, LENGTH = 16, 2, 64
TEXTS = 2 * BATCH + (2 + NEGATIVES) * BATCH


def main() -> None:
    options, rows = options_of(__doc__), []
    with Interleaved(TRAINERS) as trainers:
        for precision in precisions():
            rows += table(precision, trainers.durations(options, precision), trainers.memory())
    save(
        "training_throughput",
        "Training throughput: one step of B1 on all-MiniLM-L6-v2, one CPU thread",
        rows,
        [
            f"A step is {TEXTS} texts and one update; {repeated(options)}.",
            load_of_machine(),
            "Same encoder, rows, batch, lengths, update and precision. The losses are of one family (in-batch "
            "cross-entropy with hard negatives); semray's also scores the backward direction and a margin term.",
            "Peak memory is a process's, libraries included; that of bf16 is the same process's, after fp32.",
            "bf16 is autocast over float32 weights on both sides, and left out where the processor emulates it. A "
            f"study's `precision: auto` takes here: {best_precision()}.",
        ],
        packages=("torch", "deepspeed", "transformers", "sentence-transformers"),
    )


@cache
def full_rows() -> ConceptCorpus:
    """The corpus with the definitions that have at least two hard negatives, so that every step is 96 texts."""
    from corpora.concept.records import PairRows, RuleNegatives
    from corpora.store.columns import Ragged

    corpus = load(ConceptData())
    offsets = corpus.negatives.texts.offsets
    kept = np.flatnonzero(np.diff(offsets) >= NEGATIVES)[:20_000]
    t2d = PairRows(
        "t2d",
        corpus.t2d.left[kept],
        corpus.t2d.right[kept],
        Ragged.of([corpus.t2d.concept_ids[row].tolist() for row in kept]),
    )
    texts = Ragged.of([corpus.negatives.texts[row].tolist() for row in kept])
    unknown = np.zeros(len(texts.values), np.uint8)
    return replace(corpus, t2d=t2d, negatives=RuleNegatives(texts, unknown, unknown))


def ours(precision: Precision, steps: int, seed: int) -> np.ndarray:
    settings = Settings(
        hard_negatives=True,
        negatives_per_definition=NEGATIVES,
        steps=steps,
        batch_size=BATCH,
        warmup=2,
        max_length=LENGTH,
        layer_decay=1.0,
    )
    clock = Clock()
    world = World(precision=precision, report=clock.tick)
    fit(settings, resolve_backbone("all-MiniLM-L6-v2"), full_rows(), seed, world)
    return clock.durations()


def peer(precision: Precision, steps: int, seed: int) -> np.ndarray:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.training_args import MultiDatasetBatchSamplers

    one_quiet_thread()
    corpus, rng = full_rows(), np.random.default_rng(seed)
    syn = rng.choice(len(corpus.syn), steps * BATCH, replace=False)
    t2d = rng.choice(len(corpus.t2d), steps * BATCH, replace=False)
    first = corpus.negatives.texts.offsets[t2d]
    columns = {"anchor": corpus.t2d.left[t2d], "positive": corpus.t2d.right[t2d]}
    columns |= {f"negative_{n + 1}": corpus.negatives.texts.values[first + n] for n in range(NEGATIVES)}
    pairs = {"anchor": corpus.syn.left[syn], "positive": corpus.syn.right[syn]}
    model = SentenceTransformer(str(resolve_backbone("all-MiniLM-L6-v2")), device="cpu", trust_remote_code=False)
    model.max_seq_length = LENGTH
    data = {
        name: Dataset.from_dict({side: corpus.texts.take(texts) for side, texts in rows.items()})
        for name, rows in {"syn": pairs, "t2d": columns}.items()
    }
    return train_with_peer(
        model,
        data,
        MultipleNegativesRankingLoss(model),
        steps=steps,
        batch=BATCH,
        seed=seed,
        gradient_accumulation_steps=2,  # one batch of each data set
        multi_dataset_batch_sampler=MultiDatasetBatchSamplers.ROUND_ROBIN,
        learning_rate=2e-5,
        weight_decay=0.01,
        bf16=precision == "bf16",
    )


def table(precision: Precision, steps: dict[str, np.ndarray], memory: dict[str, float]) -> list[dict[str, object]]:
    cpu = {name: median(parts[:, 1]) for name, parts in steps.items()}
    return [
        {
            "precision": precision,
            "trainer": name,
            "CPU seconds a step": round(cpu[name], 3),
            "wall seconds a step": round(median(parts[:, 0]), 3),
            "sentences per CPU second": round(TEXTS / cpu[name]),
            "peak memory, MB": round(memory[name]),
            "speed": f"{cpu['sentence-transformers'] / cpu[name]:.2f} x",
        }
        for name, parts in steps.items()
    ]


def precisions() -> tuple[Precision, ...]:
    """Those that this processor multiplies."""
    return ("fp32", "bf16") if multiplies_bf16() else ("fp32",)


TRAINERS = {"sentence-transformers": peer, "semray": ours}


if __name__ == "__main__":
    main()
