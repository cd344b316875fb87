"""What a concept study may set, and which of it can change a result.

Arms are combinations of three settings: B0 (mean, no training), B0-WM (weighted, no training), B1 (mean, hard
negatives), B1-noHN (mean), B2 (cls, hard negatives), B3 (weighted), M1 (weighted, hard negatives).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from trainers.engine.limits import Steps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a concept study. ValueError names a field whose value is not accepted.

    batch_size is the number of pairs per view and step over all workers. layers and pool_lr_multiplier belong to
    the weighted readout: it mixes the last `layers` layers and its mixture learns at learning_rate ·
    pool_lr_multiplier. negatives_per_definition: draw so many of a definition's hard negatives in each step,
    None for all. hn_temperature: None for `temperature`. hn_mode:
      absolute  softplus((s⁻ - hn_margin) / τ)             relative  softplus((s⁻ - s⁺ + hn_margin) / τ)
      both      absolute, and softplus(-(s⁺ - hn_margin) / τ) for the positives
      unscaled  absolute with τ = 1                        unified   negatives in the InfoNCE denominator instead
    A view without rows adds nothing; the others keep their weight.
    """

    train: bool = True
    readout: Literal["mean", "cls", "max", "weighted"] = "mean"
    layers: int = 4
    hard_negatives: bool = False
    learning_rate: float = 2e-5
    steps: Steps = 8000
    batch_size: int = 16
    warmup: int = 100
    layer_decay: float = 0.9
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    max_length: int = 128
    temperature: float = 0.05
    symmetric: bool = True
    syn_weight: float = 1.0
    t2d_weight: float = 1.0
    hn_mode: Literal["absolute", "relative", "both", "unscaled", "unified"] = "absolute"
    hn_margin: float = 0.20
    hn_coefficient: float = 0.5
    hn_temperature: float | None = None
    hn_reduction: Literal["mean", "sum"] = "mean"
    negatives_per_definition: int | None = None
    pool_lr_multiplier: float = 1.0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "layers", "max_length", "learning_rate", "temperature", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"train.{name} = {getattr(self, name)!r}\n  accepted: a number above 0")
        for name in ("hn_temperature", "negatives_per_definition"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"train.{name} = {value!r}\n  accepted: a number above 0, or null")
        if self.warmup < 0:
            raise ValueError(f"train.warmup = {self.warmup!r}\n  accepted: a number of steps, 0 or more")


HARD_NEGATIVES = frozenset(
    {"negatives_per_definition"} | {name for name in Settings.__annotations__ if name[:3] == "hn_"}
)
WEIGHTED = frozenset({"layers", "pool_lr_multiplier"})
UNTRAINED = frozenset({"train", "readout", "layers", "max_length"})


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result: an untrained arm keeps its readout and how much text it reads."""
    kept = asdict(settings)
    if not settings.train:
        kept = {name: kept[name] for name in kept if name in UNTRAINED}
    if not settings.hard_negatives:
        kept = {name: kept[name] for name in kept if name not in HARD_NEGATIVES}
    if settings.readout != "weighted":
        kept = {name: kept[name] for name in kept if name not in WEIGHTED}
    return kept
