"""What a step of SimCSE costs, here and in the trainer of sentence-transformers, and what aligned negatives add.

    python benchmarks/san_step.py [--steps 10] [--repeats 3]

All train all-MiniLM-L6-v2 with a tanh head on the same WordNet sentences: 32 anchors of at most 32 pieces, each
beside itself under another dropout, cross-entropy over cosines at temperature 0.05, one AdamW update, one
thread. The peer runs MultipleNegativesRankingLoss at scale 20 over the same head, with its own defaults. With
negatives a step has 96 texts for 64. Each trainer has a process of its own; the peer needs the package
accelerate.
"""

from __future__ import annotations

from functools import cache, partial
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np
from steps import Clock, Interleaved, load_of_machine, one_quiet_thread, options_of, repeated, train_with_peer
from tables import save

from corpora.san.corpus import load
from corpora.san.data import SanData
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import World
from trainers.san.settings import Settings
from trainers.san.training import fit

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus

BATCH, LENGTH = 32, 32


def main() -> None:
    options = options_of(__doc__)
    with Interleaved(TRAINERS) as trainers:
        steps = trainers.durations(options)
    save(
        "san_step",
        "A step of SimCSE on all-MiniLM-L6-v2, plain and with aligned negatives, one CPU thread, fp32",
        table(steps),
        [
            f"A step has {BATCH} anchors, {2 * BATCH} texts plain and {3 * BATCH} with negatives, and one update; "
            f"{repeated(options)}.",
            load_of_machine(),
            "Same encoder, head, sentences, lengths, loss and update on both sides. SAN, table 10, prints +22 % on"
            " average for its four hosts.",
        ],
        packages=("torch", "deepspeed", "transformers", "sentence-transformers"),
    )


@cache
def corpus() -> SanCorpus:
    return load(SanData(sentences="wordnet", sample=4800, most_words=24))


def ours(steps: int, seed: int, *, san_pass: Literal["separate", "fused"] | None = None) -> np.ndarray:
    settings = Settings(
        readout="mean",
        san="off" if san_pass is None else "hince",
        negatives="" if san_pass is None else "san",
        san_pass=san_pass or "separate",
        steps=steps,
        batch_size=BATCH,
        max_length=LENGTH,
    )
    clock = Clock()
    fit(settings, resolve_backbone("all-MiniLM-L6-v2"), corpus(), seed, World(report=clock.tick))
    return clock.durations()


def peer(steps: int, seed: int) -> np.ndarray:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    one_quiet_thread()
    body = models.Transformer(str(resolve_backbone("all-MiniLM-L6-v2")), max_seq_length=LENGTH)
    width = body.get_embedding_dimension()
    model = SentenceTransformer(
        modules=[body, models.Pooling(width), models.Dense(width, width, activation_function=torch.nn.Tanh())],
        device="cpu",
        trust_remote_code=False,
    )
    rows = np.random.default_rng(seed).choice(len(corpus()), steps * BATCH, replace=False)
    texts = corpus().sentences.take(rows)
    return train_with_peer(
        model,
        Dataset.from_dict({"anchor": texts, "positive": texts}),
        MultipleNegativesRankingLoss(model, scale=20.0),
        steps=steps,
        batch=BATCH,
        seed=seed,
        learning_rate=3e-5,
    )


def table(steps: dict[str, np.ndarray]) -> list[dict[str, object]]:
    cpu = {name: median(parts[:, 1]) for name, parts in steps.items()}
    return [
        {
            "trainer": name,
            "CPU seconds a step": round(cpu[name], 3),
            "wall seconds a step": round(median(parts[:, 0]), 3),
            "speed against the peer": f"{cpu['sentence-transformers'] / cpu[name]:.2f} x",
            "cost against plain": f"{cpu[name] / cpu['semray, plain']:.2f} x",
        }
        for name, parts in steps.items()
    ]


TRAINERS = {
    "sentence-transformers": peer,
    "semray, plain": ours,
    "semray, with negatives (separate)": partial(ours, san_pass="separate"),
    "semray, with negatives (fused)": partial(ours, san_pass="fused"),
}


if __name__ == "__main__":
    main()
