"""What a masked-word training is told, and what is known of the model that it leaves: read without torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from corpora.store.cache import key_of
from corpora.store.fields import Count, check_fields
from trainers.engine.world import Precision

FORMAT = 1  # raised whenever the same sentences and settings would give another model
ABOUT = "masked_training.json"


@dataclass(frozen=True, kw_only=True)
class MaskedSettings:
    """How long and how fast it learns. ValueError names a field whose value is not accepted.

    learning_rate: of the layers, decaying to 0; head_rate: of the head. batch_size in sentences, max_length in
    tokens. All are ours: with a GPU, that much moves a small encoder from function words to content words.
    """

    steps: Count = 2000
    batch_size: Count = 64
    max_length: Annotated[int, Ge(8), Le(512)] = 64
    learning_rate: Annotated[float, Gt(0)] = 7e-4
    head_rate: Annotated[float, Gt(0)] = 2e-3
    seed: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self, "masked")


def identity(settings: MaskedSettings, backbone: str, sentences: str, precision: Precision) -> str:
    """Names the model that comes of a backbone, by its fingerprint, and of sentences, by their key."""
    made_of = {"settings": asdict(settings), "backbone": backbone, "sentences": sentences, "precision": precision}
    return key_of({"format": FORMAT, **made_of})


def about(folder: Path) -> dict[str, Any] | None:
    """What is known of the model in a folder; None where there is none."""
    file = folder / ABOUT
    return json.loads(file.read_text()) if file.is_file() else None
