"""What a step of SimCSE costs, here and in the trainer of sentence-transformers, and what aligned negatives add.

    python benchmarks/san_step.py [--steps 10] [--repeats 3]

All train all-MiniLM-L6-v2 with a tanh head on the same WordNet sentences: 32 anchors of at most 32 pieces, each
beside itself under another dropout, cross-entropy over cosines at temperature 0.05, one AdamW update, one
thread. The peer runs MultipleNegativesRankingLoss at scale 20 over the same head, with its own defaults. With
negatives a step has 96 texts for 64. Each trainer has a process of its own; the peer needs the package
accelerate.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np
from tables import save

from corpora.san.corpus import load
from corpora.san.data import SanData
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import Progress, World
from trainers.san.settings import Settings
from trainers.san.training import fit

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus

BATCH, LENGTH = 32, 32
Clock = list[tuple[float, float]]  # wall and CPU seconds at the end of each step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    spawn = multiprocessing.get_context("spawn")  # process groups and variables of one stay with it
    processes = {name: ProcessPoolExecutor(1, mp_context=spawn) for name in TRAINERS}
    steps: dict[str, list[np.ndarray]] = {name: [] for name in TRAINERS}
    for repeat in range(options.repeats):  # interleaved: what else runs meets all alike
        for name, trainer in TRAINERS.items():
            steps[name].append(processes[name].submit(trainer, options.steps, repeat).result())
    save(
        "san_step",
        "A step of SimCSE on all-MiniLM-L6-v2, plain and with aligned negatives, one CPU thread, fp32",
        table({name: np.concatenate(parts) for name, parts in steps.items()}),
        [
            f"A step has {BATCH} anchors, {2 * BATCH} texts plain and {3 * BATCH} with negatives, and one update; "
            f"median over {options.repeats} interleaved repeats of {options.steps} steps, without the first 2.",
            f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: CPU time suffers less than wall time.",
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
    clock: Clock = []

    def tick(progress: Progress) -> None:
        clock.append((time.perf_counter(), time.process_time()))

    fit(settings, resolve_backbone("all-MiniLM-L6-v2"), corpus(), seed, World(report=tick))
    return durations(clock)


def peer(steps: int, seed: int) -> np.ndarray:
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        models,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    body = models.Transformer(str(resolve_backbone("all-MiniLM-L6-v2")), max_seq_length=LENGTH)
    width = body.get_embedding_dimension()
    model = SentenceTransformer(
        modules=[body, models.Pooling(width), models.Dense(width, width, activation_function=torch.nn.Tanh())],
        device="cpu",
        trust_remote_code=False,
    )
    rows = np.random.default_rng(seed).choice(len(corpus()), steps * BATCH, replace=False)
    texts = corpus().sentences.take(rows)
    clock: Clock = []

    class Ticking(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            clock.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            learning_rate=3e-5,
            use_cpu=True,
            seed=seed,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts}),
            loss=MultipleNegativesRankingLoss(model, scale=20.0),
            callbacks=[Ticking()],
        ).train()
    return durations(clock)


def durations(clock: Clock) -> np.ndarray:
    """Wall and CPU seconds of each step after the second. -> (steps - 2, 2)."""
    return np.diff(np.array(clock), axis=0)[1:]


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
