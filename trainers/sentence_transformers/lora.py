"""LoRA by PEFT: adds the updates of an arm to a transformer, and finds beforehand what it would refuse."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from trainers.sentence_transformers.settings import LoraSettings


def with_lora(transformer: Any, lora: LoraSettings) -> Any:
    """The transformer with low-rank updates beside its layers. Raises ValueError as PEFT does."""
    import peft

    config = peft.LoraConfig(
        task_type="FEATURE_EXTRACTION",
        r=lora.r,
        lora_alpha=lora.lora_alpha,
        lora_dropout=lora.lora_dropout,
        target_modules=None if lora.target_modules is None else list(lora.target_modules),
    )
    return peft.get_peft_model(transformer, config)


def check_targets(folder: Path, lora: LoraSettings) -> None:
    """Raise ValueError for names of which a backbone has no layer, and if PEFT has nothing to update in it.

    No weights are read.
    """
    from trainers.encoders.weightless import without_weights

    transformer = without_weights(folder)
    accepted = f"accepted: with {folder.name} a list of {', '.join(linear_layers(transformer))}"
    places = [f".{place}" for place, _ in transformer.named_modules() if place]
    for name in lora.target_modules or ():  # PEFT passes over one unknown name beside a known one
        if not any(place.endswith(f".{name}") for place in places):
            raise ValueError(f"lora.target_modules holds {json.dumps(name)}\n  {accepted}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what PEFT has to say of a training is for the run
            with_lora(transformer, lora)
    except ValueError:
        raise ValueError(f"lora.target_modules = {json.dumps(lora.target_modules)}\n  {accepted}") from None


def linear_layers(transformer: Any) -> list[str]:
    """The last parts of the names of its linear layers, each once."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D  # what GPT-2 has in their place

    linear = (name for name, module in transformer.named_modules() if isinstance(module, nn.Linear | Conv1D))
    return sorted({name.rpartition(".")[2] for name in linear})
