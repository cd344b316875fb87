"""The product of a command: a file of scores, an encoder, or both; and how the encoder reads texts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from corpora.command.scores import FILES
from corpora.store.telling import Tell, unheard
from trainers.command.process import end_of
from trainers.encoders.backbones import modules_in, normalises, unusable
from trainers.encoders.frozen_encoder import SentenceEncoder
from trainers.engine.world import World
from trainers.errors import TrainerError

MODEL, LOG = "model", "command.log"
LOG_BYTES = 1 << 20  # so much of a log's end is kept with the model
SAFE = {".safetensors", ".json", ".txt", ".model", ".md"}  # files that are neither unpickled nor run


class NothingLeft(TrainerError):
    """A command succeeded, but left nothing to score, or not what a task reads."""


@dataclass
class Product:
    """The product of a command's run. encoder: a folder that sentence-transformers opens, or None. scores: a file.

    made: True if a command made it, False for an unchanged backbone. truncated: how many texts were cut. notes:
    for the report. room: a temporary folder that is removed with this object. tell: hears, in words, how far
    reading is.
    """

    encoder: Path | None
    scores: Path | None
    world: World
    made: bool = True
    notes: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None
    truncated: int = 0
    room: TemporaryDirectory[str] | None = None
    tell: Tell = unheard

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[str]], Any]]:
        """The function for each kind of input: texts give vectors, names of metrics the path of the scores."""
        scaled = self.encoder is None or normalises(self.encoder)
        unscaled = {} if scaled else {"unscaled": self.encode_unscaled}
        return {"texts": self.encode, "scores": self.place_of_scores, **unscaled}

    def place_of_scores(self, names: Sequence[str]) -> list[Path]:
        """The scores file, once for each of these metrics. NothingLeft if there is none."""
        if self.scores is None:
            raise NothingLeft(
                f"evaluate: scores: the command left no scores\n  accepted: one of {', '.join(FILES)} in {{out}}"
            )
        return [self.scores for _ in names]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors as sentence-transformers gives them. N texts -> (N, D) float32."""
        return self._read(texts, self._encoder.encode)

    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors as the encoder's own modules make them. N texts -> (N, D) float32."""
        return self._read(texts, self._encoder.encode_unscaled)

    def _read(self, texts: Sequence[str], encode: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
        bf16 = self.world.precision == "bf16"
        device = self.world.device.partition(":")[0]
        self.truncated += self._encoder.cut(texts)
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            return encode(texts)

    def save(self, path: Path) -> None:
        """Copy the encoder's safe files, the scores file and the end of the log into a folder."""
        if self.encoder is not None:
            shutil.copytree(self.encoder, path, dirs_exist_ok=True, ignore=_unsafe(self.encoder))
        if self.scores is not None:
            shutil.copyfile(self.scores, path / self.scores.name)
        if self.log is not None:
            (path / LOG).write_bytes(end_of(self.log, LOG_BYTES))

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        if self.encoder is None:
            raise NothingLeft(
                "evaluate: a task reads texts, and the command left no encoder\n  accepted: one in {out}/model"
            )
        return SentenceEncoder(self.encoder, device=self.world.device, tell=lambda words: self.tell(words))


def _unsafe(encoder: Path) -> Callable[[str, list[str]], set[str]]:
    """A copytree filter that skips links, files that could run when opened, and folders of no module."""
    modules = {module for _, module in modules_in(encoder)}

    def ignored(folder: str, names: list[str]) -> set[str]:
        places = [Path(folder, name) for name in names]
        seen = [place for place in places if not place.name.startswith(".")]  # what is hidden is no model's
        kept = {place for place in seen if place in modules or (place.is_file() and place.suffix in SAFE)}
        return {place.name for place in places if place not in kept or place.is_symlink()}

    return ignored


def opened(folder: Path, world: World) -> Product:
    """Open a folder with a backbone, or with a product that `save` wrote."""
    return Product(_encoder_in(folder), _scores_in(folder), world, made=(folder / LOG).exists())


def left_in(out: Path, world: World, **more: Any) -> Product:
    """The product in a command's `{out}`. NothingLeft for none, two scores files, or an unusable encoder."""
    encoder, scores = out / MODEL, _scores_in(out)
    if encoder.is_dir() and (problem := unusable(encoder)) is not None:
        raise NothingLeft(f"{encoder}: {problem}\n  accepted: a folder of SentenceTransformer or transformers")
    if not encoder.is_dir() and scores is None:
        raise NothingLeft(
            f"{out}: the command ended well, and left {_held_by(out)}\n"
            f"  accepted: one of {', '.join(FILES)}, or an encoder's folder named {MODEL}"
        )
    return Product(encoder if encoder.is_dir() else None, scores, world, **more)


def _held_by(out: Path) -> str:
    """The content of a command's `{out}` in words: up to 10 names, with those of scores that are no file."""
    if not out.is_dir():
        return "a file in place of that folder" if out.is_file() else "no folder there"
    names = sorted(place.name.encode(errors="backslashreplace").decode() for place in out.iterdir())
    words = [f"{name}, which is no file" if name in FILES else name for name in names]
    return ", ".join(words[:10]) or "nothing"


def _scores_in(folder: Path) -> Path | None:
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if len(found) > 1:
        raise NothingLeft(f"{folder}: holds {' and '.join(p.name for p in found)}\n  accepted: one file of scores")
    return found[0] if found else None


def _encoder_in(folder: Path) -> Path | None:
    return folder if (folder / "config.json").is_file() else None
