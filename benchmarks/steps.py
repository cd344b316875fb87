"""Training steps on the clock: every trainer in a process of its own, their repeats interleaved."""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

LEFT_OUT = 2  # of the first steps of a trainer
Trainer = Callable[..., np.ndarray]  # what it is told, steps, seed -> wall and CPU seconds, (steps - LEFT_OUT, 2)


class Clock:
    """Wall and CPU time at the end of every step."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []

    def tick(self, *_: object) -> None:
        self.ends.append((time.perf_counter(), time.process_time()))

    def durations(self) -> np.ndarray:
        """Wall and CPU seconds of each step but the first. -> (steps - LEFT_OUT, 2)."""
        return np.diff(np.array(self.ends), axis=0)[LEFT_OUT - 1 :]


class Interleaved:
    """Trainers of one thread, each in a process that it keeps: process groups and variables stay with it."""

    def __init__(self, trainers: Mapping[str, Trainer]) -> None:
        os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        spawn = multiprocessing.get_context("spawn")
        self.trainers = trainers
        self.processes = {name: ProcessPoolExecutor(1, mp_context=spawn) for name in trainers}

    def __enter__(self) -> Interleaved:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.shutdown()

    def durations(self, options: argparse.Namespace, *told: Any) -> dict[str, np.ndarray]:
        """Seconds of the steps of every trainer over all repeats; what else runs meets all of them alike."""
        parts: dict[str, list[np.ndarray]] = {name: [] for name in self.trainers}
        for repeat in range(options.repeats):
            for name, trainer in self.trainers.items():
                parts[name].append(self.processes[name].submit(trainer, *told, options.steps, repeat).result())
        return {name: np.concatenate(found) for name, found in parts.items()}

    def memory(self) -> dict[str, float]:
        """The most that each process has held so far, in MB."""
        return {name: process.submit(_peak).result() for name, process in self.processes.items()}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def options_of(description: str | None, *, steps: int = 10) -> argparse.Namespace:
    """How many steps and repeats the command line asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def repeated(options: argparse.Namespace) -> str:
    """How the figures came about, for a note."""
    return (
        f"median over {options.repeats} interleaved repeats of {options.steps} steps, the first {LEFT_OUT} of each"
        " left out"
    )


def load_of_machine() -> str:
    """What else ran, for a note."""
    return f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: CPU time suffers less than wall time."


def train_with_peer(
    model: Any, rows: Any, loss: Any, *, steps: int, batch: int, seed: int, **own: Any
) -> np.ndarray:
    """Steps of the trainer of sentence-transformers, with its defaults but for what is given here; on a CPU unless
    that says otherwise."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import TrainerCallback

    clock = Clock()

    class Ticking(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            clock.tick()

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=batch,
            seed=seed,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **{"use_cpu": True, **own},
        )
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=rows, loss=loss, callbacks=[Ticking()]
        ).train()
    return clock.durations()


def one_quiet_thread() -> None:
    """As semray's own lanes have it: one thread, no progress bars."""
    import torch
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
