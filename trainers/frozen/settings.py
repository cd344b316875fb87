"""What a study of frozen encoders may set: how a backbone is read. Nothing is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from corpora.store.fields import Length, check_fields


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One arm: a readout, and how many tokens of a text are read. ValueError names a value that is refused.

    readout "own": as the model's own modules read it. max_length null: the model's own.
    """

    train: Literal[False] = False
    readout: Literal["own", "mean", "cls", "max"] = "own"  # ours: what the model's makers say
    max_length: Length | None = None  # ours, as the readout; tokens

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
