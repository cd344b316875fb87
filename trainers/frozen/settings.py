"""What a study of frozen encoders may set: how a backbone is read. Nothing is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from corpora.store.fields import Count, check_fields


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One arm: a readout, and how many tokens of a text are read. ValueError names a value that is refused."""

    train: Literal[False] = False
    readout: Literal["mean", "cls", "max"] = "mean"  # ours: what most sentence encoders are read by
    max_length: Count = 256  # ours: the limit of all-MiniLM-L6-v2, tokens

    def __post_init__(self) -> None:
        if self.train:
            raise ValueError("train.train = true\n  accepted: false; a family that trains is named by `family:`")
        check_fields(self, "train")


@dataclass(frozen=True, kw_only=True)
class FrozenData:
    """The `data:` block. path: a folder in which benchmarks are looked for before $SEMRAY_DATA."""

    path: str | None = None  # a place, no choice


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result."""
    return asdict(settings)
