"""Loads a backbone with its masked-language-model head, which predicts hidden words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trainers.encoders.backbones import read_otherwise
from trainers.encoders.quiet import quiet


def load_masked_lm(folder: Path) -> tuple[Any, Sequence[str]]:
    """The model in float32 with its head, and the names of weights missing in the folder, which torch initialised.

    Raises ValueError for a kind of model that has no such head.
    """
    from transformers import AutoModelForMaskedLM

    with quiet():
        model, loading = AutoModelForMaskedLM.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            **read_otherwise(folder),
        )
    return model, sorted(loading["missing_keys"])
