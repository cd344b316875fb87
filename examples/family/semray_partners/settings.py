"""What a study of partners may set. An annotation says what a field accepts; `semray plan` holds studies to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from annotated_types import Gt, Lt

from semray.extending import Count, NotNegative, Positive, Steps, check_fields


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block and an arm, merged. ValueError names a field whose value is not accepted."""

    train: bool = True
    learning_rate: Positive = 2e-5
    temperature: Positive = 0.05
    weight_decay: NotNegative = 0.01
    batch_size: Count = 16
    steps: Steps = 100
    max_length: Count = 64  # tokens

    def __post_init__(self) -> None:
        check_fields(self, "train")


@dataclass(frozen=True, kw_only=True)
class Data:
    """The `data:` block. pairs: a file of two texts a line, tab-separated. test: the share that is measured on."""

    pairs: str = "pairs.tsv"
    test: Annotated[float, Gt(0), Lt(1)] = 0.3
    path: str | None = None  # a folder in which the field's benchmarks are looked for

    def __post_init__(self) -> None:
        check_fields(self, "data")


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the model: all, but of an untrained arm only how it reads."""
    kept = asdict(settings)
    return kept if settings.train else {name: kept[name] for name in ("train", "max_length")}
