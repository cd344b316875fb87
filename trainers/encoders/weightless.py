"""A backbone on torch's meta device: its modules by their names, without the time and memory of its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers.encoders.backbones import ENCODER_ALONE


def without_weights(folder: Path) -> Any:
    """The transformer that `load_backbone` would load, without weights; no code from the folder."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    kind: Any = AutoModelForTextEncoding if config.model_type in ENCODER_ALONE else AutoModel
    with torch.device("meta"):
        return kind.from_config(config)
