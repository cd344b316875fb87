"""The settings of a study of frozen encoders: how a backbone is read. Nothing is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from corpora.store.fields import Length, check_fields


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One arm: a readout, and how many tokens of a text are read. ValueError names a value that is refused.

    readout "own": by the model's own modules. max_length: in tokens; null for the model's own.
    """

    train: Literal[False] = False
    readout: Literal["own", "mean", "cls", "max"] = "own"  # ours: as its makers intend
    max_length: Length | None = None  # ours, as the readout

    def __post_init__(self) -> None:
        if self.train:
            raise ValueError("train.train = true\n  accepted: false; a family that trains is named by `family:`")
        check_fields(self, "train")


@dataclass(frozen=True, kw_only=True)
class FrozenData:
    """The `data:` block. path: a folder to search for benchmarks before $SEMRAY_DATA."""

    path: str | None = None  # a place, no choice


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result."""
    return asdict(settings)
