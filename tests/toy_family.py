"""A family as small as one can be: it learns how much to weigh a word's length, and is scored on one task of its own.

What a family of one's own takes: this file, and one line in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, Task
from orchestration.families.contract import Family, Trainer
from orchestration.families.encoders import EncoderFamily
from trainers.engine.streams import number
from trainers.engine.world import Progress, World


@dataclass(frozen=True, kw_only=True)
class ToySettings:
    train: bool = True
    learning_rate: float = 0.1


@dataclass(frozen=True, kw_only=True)
class ToyData:
    words: tuple[str, ...] = ("a", "bb", "cccc")


@dataclass(frozen=True)
class ToyCorpus:
    words: tuple[str, ...]
    fingerprint: str


@dataclass
class ToyEncoder:
    weight: float
    truncated: int = 0

    @property
    def readers(self) -> dict[str, Any]:
        return {"texts": self.encode}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[1.0, self.weight * len(text)] for text in texts], np.float32)

    def save(self, path: Path) -> None:
        (path / "weight.txt").write_text(repr(self.weight))


def fingerprint(data: ToyData) -> str:
    return "|".join(data.words)


def load(data: ToyData) -> ToyCorpus:
    return ToyCorpus(data.words, fingerprint(data))


def read(settings: ToySettings, folder: Path, world: World) -> ToyEncoder:
    saved = folder / "weight.txt"
    return ToyEncoder(float(saved.read_text()) if saved.exists() else 0.5)


def fit(
    settings: ToySettings, backbone: Path, corpus: ToyCorpus, seed: int, world: World
) -> tuple[ToyEncoder, list[Progress]]:
    weight = 0.5 + settings.learning_rate * len(corpus.words) + number(seed, "init") % 97 / 1000
    return ToyEncoder(weight), [Progress(step=1, steps=1, loss=weight)]


def tasks(data: ToyData) -> dict[str, Task[tuple[str, ...], str]]:
    benchmark = Benchmark(fingerprint=lambda: fingerprint(data), load=lambda: data.words)
    return {
        name: Task(
            name=name,
            metrics={f"{name}/mean": True},
            headline=f"{name}/mean",
            benchmark=benchmark,
            texts=list,
            score=lambda words, encode, name=name: [
                Score(metric=f"{name}/mean", value=float(encode(words)[:, 1].mean()) / 100)
            ],
            source="made up",
        )
        for name in ("length", "again")
    }


def trainer() -> Trainer:
    from tests import toy_family

    return toy_family


FAMILY: Family = EncoderFamily(
    settings=ToySettings,
    data=ToyData,
    defining=asdict,
    fingerprint=fingerprint,
    load=load,
    trainer=trainer,
    own_tasks=tasks,
)
