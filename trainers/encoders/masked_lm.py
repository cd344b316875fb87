"""A backbone with the head it was pre-trained with, which names hidden words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trainers.encoders.quiet import quiet


def load_masked_lm(folder: Path) -> tuple[Any, Sequence[str]]:
    """The model in float32 with its head, and which of its weights the folder lacks and torch made up.

    ValueError for a kind of model that has no such head.
    """
    from transformers import AutoModelForMaskedLM

    with quiet():
        model, told = AutoModelForMaskedLM.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    return model, sorted(told["missing_keys"])
