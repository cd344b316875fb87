"""The gated readout as a module for sentence-transformers, which has no module that mixes layers by text.

    model = sentence_transformer(folder)          # a SentenceTransformer; nothing in the folder is run

Since release 6 sentence-transformers refuses a folder that names another library's module unless it may trust
foreign code. `sentence_transformer` needs no such trust: the folder holds only numbers, and the module is this
file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Normalize, Transformer
from torch import Tensor

from trainers.encoders import readouts
from trainers.encoders.backbones import GATED_POOLING, listed_modules, read_otherwise
from trainers.encoders.layer_gate import LayerGate

WEIGHTS = "model.safetensors"


class GatedLayerPooling(Module):
    """Mix the last `layers` layers by the weights that a gate gives each text, then average over its tokens."""

    config_keys: list[str] = ["embedding_dimension", "layers"]  # noqa: RUF012 - the base class's attribute

    def __init__(self, embedding_dimension: int, layers: int) -> None:
        super().__init__()
        self.embedding_dimension = embedding_dimension
        self.layers = layers
        self.gate = LayerGate(embedding_dimension, layers)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Adds "sentence_embedding" (N, D) from "all_layer_embeddings" L + 1 x (N, T, D) and "attention_mask"."""
        hidden: list[Tensor] = [layer.float() for layer in features["all_layer_embeddings"][-self.layers :]]
        features["sentence_embedding"] = readouts.gated(hidden, features["attention_mask"], self.gate)
        return features

    def get_embedding_dimension(self) -> int:
        return self.embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Configuration and weights, as safetensors whatever is asked for."""
        self.save_config(output_path)
        save_file(self.gate.state_dict(), Path(output_path) / WEIGHTS)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *_: Any, **options: Any) -> GatedLayerPooling:
        """From the folder that `save` wrote below this one."""
        folder = Path(model_name_or_path) / subfolder
        module = cls(**json.loads((folder / "config.json").read_text()))
        module.gate.load_state_dict(load_file(folder / WEIGHTS))
        return module


def sentence_transformer(folder: Path, **options: Any) -> SentenceTransformer:
    """`SentenceTransformer(folder)`, also where the folder holds a gated readout. options: as it takes them."""
    modules, otherwise = listed_modules(folder), dict(read_otherwise(folder))
    gated = next((module["path"] for module in modules if module["type"] == GATED_POOLING), None)
    if gated is None:
        return SentenceTransformer(str(folder), trust_remote_code=False, config_kwargs=otherwise, **options)
    reading = {"local_files_only": True, "model_kwargs": options.pop("model_kwargs", None)}
    declared = json.loads((folder / "config_sentence_transformers.json").read_text())
    prompts = {name: declared[name] for name in ("prompts", "default_prompt_name") if name in declared}
    body = Transformer.load(str(folder), trust_remote_code=False, config_kwargs=otherwise, **reading)
    parts = [body, GatedLayerPooling.load(str(folder), gated), Normalize()]
    return SentenceTransformer(modules=parts, trust_remote_code=False, **prompts, **options)
