"""What a concept study may set, and which of it can change a result.

Arms are combinations of three settings: B0 (mean, no training), B0-WM (weighted, no training), B1 (mean, hard
negatives), B1-noHN (mean), B2 (cls, hard negatives), B3 (weighted), M1 (weighted, hard negatives). Tables and
sections beside the defaults are the paper's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from corpora.store.fields import Count, Positive, check_fields
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
    readout: Literal["mean", "cls", "max", "weighted"] = "mean"  # B1, the paper's baseline
    layers: Count = 4  # table 9, the layer window
    hard_negatives: bool = False  # an arm says so
    learning_rate: Positive = 2e-5  # ours: table 9 leaves it blank; usual for this size, batch and decay
    steps: Steps = 8000  # table 9
    batch_size: Count = 16  # table 9
    warmup: Annotated[int, Ge(0)] = 100  # table 9
    layer_decay: float = 0.9  # table 9, per layer
    weight_decay: float = 0.01  # table 9
    clip_norm: Positive = 1.0  # table 9
    max_length: Count = 128  # table 9, tokens
    temperature: Positive = 0.05  # table 9
    symmetric: bool = True  # ours: both directions are scored; the formula is missing from the text
    syn_weight: float = 1.0  # section 4.3: only d2d has another weight
    t2d_weight: float = 1.0  # section 4.3
    hn_mode: Literal["absolute", "relative", "both", "unscaled", "unified"] = "absolute"  # ours, docs/concept.md
    hn_margin: float = 0.20  # table 9
    hn_coefficient: float = 0.5  # section 4.3
    hn_temperature: Positive | None = None  # ours
    hn_reduction: Literal["mean", "sum"] = "mean"  # ours: a sum over 80 negatives would swamp the positives
    negatives_per_definition: Count | None = None  # ours
    pool_lr_multiplier: float = 1.0  # section 4.4: the pooling head receives the base rate

    def __post_init__(self) -> None:
        check_fields(self, "train")


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
