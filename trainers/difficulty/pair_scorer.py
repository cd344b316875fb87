"""The product of a difficulty study: a re-ranker over cached frozen embeddings, in a folder of its own.

It scores pairs, it does not make vectors: `adapter.safetensors` holds the parameters, `scorer.json` the rest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainers.difficulty.adapters import pair_heads, pair_scores, working
from trainers.difficulty.data import TaskData
from trainers.difficulty.settings import PAIR_FORMS, Settings
from trainers.difficulty.stack import Model, TrainedAdapter, layout_of
from trainers.encoders.frozen_encoder import FrozenEncoder, SentenceEncoder
from trainers.errors import TrainerError

FORMAT = 1
CONFIG, WEIGHTS = "scorer.json", "adapter.safetensors"
BLOCK = 4096  # pairs scored at once
LENGTH = 1e-3  # how far from 1 the length of a unit vector may be


class ScorerError(TrainerError):
    """A scorer's folder cannot be used; the message names the file, what was found and what is accepted."""


def named(trained: TrainedAdapter, d: int) -> dict[str, Tensor]:
    """One model's parameters by name, without the stack's first axis. d: width of the embeddings."""
    views = layout_of(trained.model.settings, d).views(trained.row[None])
    return {name: view[0].clone() for name, view in views.items()}


def save_adapter(path: Path, trained: TrainedAdapter, d: int) -> None:
    """Write one model's named parameters as safetensors; of any arm, per-sentence ones too."""
    from safetensors.torch import save_file

    save_file(named(trained, d), path)


def load_adapter(folder: Path, settings: Settings, seed: int, d: int) -> TrainedAdapter:
    """The adapter of one data set as a run saved it. ScorerError for a folder that holds none of these
    settings."""
    from safetensors.torch import load_file

    layout, config = layout_of(settings, d), folder / CONFIG
    try:
        found = load_file(folder / WEIGHTS)
        gamma = json.loads(config.read_text())["gamma"] if settings.form in PAIR_FORMS else settings.gamma
    except (OSError, ValueError, KeyError) as error:
        raise ScorerError(f"{folder} holds no adapter: {error}\n  accepted: one that a run saved") from error
    row = torch.zeros(1, layout.size)
    views = layout.views(row)
    wanted = {name: tuple(view.shape[1:]) for name, view in views.items()}
    if wanted != {name: tuple(tensor.shape) for name, tensor in found.items()}:
        raise ScorerError(f"{folder / WEIGHTS} is of another shape\n  accepted: {wanted}")
    for name, view in views.items():
        view[0] = found[name]
    return TrainedAdapter(Model(settings, seed, gamma), row[0], ())


def export_scorer(
    folder: Path,
    trained: TrainedAdapter,
    data: TaskData,
    *,
    backbone: str,
    prompt: str | None,
    max_length: int | None,
) -> None:
    """Write a pair arm's adapter of one task as a folder that `GatedPairScorer.load` opens.

    backbone: the name or path that the scorer will resolve; prompt, max_length: of the study's data block.
    ValueError for an arm that is not a pair arm.
    """
    settings = trained.model.settings
    if settings.form not in PAIR_FORMS:
        raise ValueError(f"form = {settings.form}; accepted for a scorer: {', '.join(PAIR_FORMS)}")
    folder.mkdir(parents=True, exist_ok=True)
    d = data.x.shape[1]
    save_adapter(folder / WEIGHTS, trained, d)
    config = {
        "format": FORMAT,
        "backbone": {"name": backbone, "prompt": prompt, "max_length": max_length},
        "width": d,
        "gated": PAIR_FORMS[settings.form].gated,
        "gamma": trained.model.gamma,
        "arm": {"form": settings.form, "seed": trained.model.seed, "steps": settings.steps},
        "task": data.task.name,
        "origin": dict(data.origin),
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=1))


@dataclass(frozen=True, eq=False)
class GatedPairScorer:
    """Frozen cosine plus a small learned correction, from -1 - gamma to 1 + gamma. Higher is more similar.

    config: the scorer's JSON: backbone, arm, seed, task and where its training targets came from.
    """

    encoder: FrozenEncoder
    parameters: dict[str, Tensor]
    gamma: float
    gated: bool
    config: dict[str, Any]

    @staticmethod
    def load(folder: str | Path, encoder: FrozenEncoder | None = None) -> GatedPairScorer:
        """Open an exported folder. encoder: instead of the backbone it names, anything that encodes alike.

        Raises ScorerError for a folder that is not a scorer's, and BackboneError when the backbone is nowhere.
        """
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            config = json.loads((folder / CONFIG).read_text())
            weights = load_file(folder / WEIGHTS)
        except (OSError, ValueError) as error:
            raise ScorerError(
                f"{folder} is not a scorer: {error}\n  accepted: a folder of export_scorer"
            ) from error
        if config.get("format") != FORMAT:
            raise ScorerError(f"{folder / CONFIG}: format {config.get('format')!r}\n  accepted: {FORMAT}")
        if encoder is None:
            from trainers.encoders.backbones import resolve_backbone

            named_in = config["backbone"]
            encoder = SentenceEncoder(
                resolve_backbone(named_in["name"]), named_in["prompt"], named_in["max_length"]
            )
        stacked = {name: value[None] for name, value in weights.items()}
        return GatedPairScorer(encoder, stacked, config["gamma"], config["gated"], config)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Similarity of each pair, (N,) float32. Every distinct sentence is encoded once."""
        if not pairs:
            return np.zeros(0, np.float32)
        sentences = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: row for row, text in enumerate(sentences)}
        x = self.encode(sentences)
        a, b = (np.array([place[pair[side]] for pair in pairs]) for side in (0, 1))
        return self.score_vectors(x[a], x[b])

    def rerank(self, query: str, candidates: Sequence[str]) -> list[tuple[int, float]]:
        """Candidates as (place in the list given, score), best first; equal scores keep the given order."""
        scores = self.score([(query, candidate) for candidate in candidates])
        order = np.argsort(-scores, kind="stable")
        return [(int(place), float(scores[place])) for place in order]

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """The frozen vectors that `score_vectors` expects, (n, d) float32: keep them to score again.

        ScorerError when the encoder's width is not the one the adapter was trained on.
        """
        x = self.encoder.encode(sentences)
        if x.shape[1] != self.config["width"]:
            raise ScorerError(f"the encoder gives {x.shape[1]} numbers a text\n  accepted: {self.config['width']}")
        return x

    def score_vectors(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Similarity of each row of a with the same row of b: unit vectors (N, d), (N, d) -> (N,) float32.

        ValueError for rows that are not of length 1 (within 1e-3, as half precision leaves them): their product
        would be no cosine.
        """
        for side, x in (("a", a), ("b", b)):
            lengths = np.linalg.norm(np.float32(x), axis=1)
            wrong = ~(np.abs(lengths - 1) <= LENGTH)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"{side}: row {row} has length {lengths[row]:.4g}\n  accepted: rows of length 1")
        gamma, gated = torch.tensor([[self.gamma]]), torch.tensor([[float(self.gated)]])
        found = []
        with torch.no_grad():
            for start in range(0, len(a), BLOCK):
                x_a, x_b = (torch.from_numpy(np.float32(x[start : start + BLOCK]))[None] for x in (a, b))
                residual, hardness = pair_heads(
                    self.parameters, working(self.parameters, x_a), working(self.parameters, x_b)
                )
                found.append(pair_scores((x_a * x_b).sum(-1), residual, hardness, gamma, gated)[0].numpy())
        return np.concatenate(found) if found else np.zeros(0, np.float32)
