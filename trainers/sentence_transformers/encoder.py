"""A model of sentence-transformers that semray trains and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from corpora.store.telling import Tell, unheard
from trainers.encoders.gated_pooling import sentence_transformer
from trainers.encoders.passes_told import passes_told
from trainers.encoders.quiet import quiet
from trainers.encoders.tokens import texts_cut, within_positions
from trainers.engine.world import World
from trainers.sentence_transformers.settings import Settings

BATCH = 32
PROMPT = "text"  # the name of the prompt for every text, in the saved folder


@dataclass(eq=False)
class SentenceModel:
    """A model and its world. truncated: how many texts were cut. tell: hears, in words, how far reading is."""

    model: SentenceTransformer
    world: World
    truncated: int = 0
    tell: Tell = unheard

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[str]], np.ndarray]]:
        scaled = any(type(module).__name__ == "Normalize" for module in self.model)
        return {"texts": self.encode} | ({} if scaled else {"unscaled": self.encode_unscaled})

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors by the library's own `encode`, with the encoder's prompt. N texts -> (N, D) float32."""
        return self._encoded(texts, normalize=True)

    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors as the model's own modules make them, with the prompt. N texts -> (N, D) float32."""
        return self._encoded(texts, normalize=False)

    def _encoded(self, texts: Sequence[str], *, normalize: bool) -> np.ndarray:
        self.truncated += texts_cut(self.model, texts)
        device = self.world.device.partition(":")[0]
        bf16 = torch.autocast(device, torch.bfloat16, enabled=self.world.precision == "bf16")
        with bf16, passes_told(self.model, len(texts), self.tell):
            rows = self.model.encode(
                list(texts), batch_size=BATCH, normalize_embeddings=normalize, show_progress_bar=False
            )
        return np.asarray(rows, np.float32)

    def save(self, path: Path) -> None:
        """Write a folder that SentenceTransformer opens; safetensors only."""
        with quiet():
            self.model.save_pretrained(str(path), create_model_card=False, safe_serialization=True)


def opened(settings: Settings, folder: Path, world: World) -> SentenceModel:
    """Load the model of a folder in float32, with the settings' prompt and length; that within its positions."""
    reading: dict[str, Any] = {"use_safetensors": True, "dtype": "float32"}
    with quiet():
        model = sentence_transformer(folder, device=world.device, model_kwargs=reading, local_files_only=True)
    if settings.max_seq_length is not None:
        config = getattr(model.transformers_model, "config", None)
        model.max_seq_length = within_positions(settings.max_seq_length, config)
    if settings.prompt is not None:
        model.prompts = {**model.prompts, PROMPT: settings.prompt}
        model.default_prompt_name = PROMPT
    return SentenceModel(model.eval(), world)
