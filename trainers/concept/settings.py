"""What a concept study may set, and which of it can change a result.

Arms are combinations of four settings: B0 (mean, no training), B0-WM (weighted, no training), B1 (mean, hard
negatives), B1-noHN (mean), B2 (cls, hard negatives), B3 (weighted), M1 (weighted, hard negatives), M2 (gated, hard
negatives), M3 (weighted, hard negatives, deep supervision). Tables and sections beside the defaults are the
paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

from corpora.store.fields import Count, Length, NotNegative, Positive, check_fields
from trainers.encoders.readout_names import MIXTURES
from trainers.engine.limits import Batch, MicroBatchSize, Steps

UNIFIED = frozenset({"unified", "unified_all"})  # negatives are in the denominator, and have no term of their own
HardNegativeMode = Literal["absolute", "relative", "both", "unscaled", "unified", "unified_all"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a concept study. ValueError names a field whose value is not accepted.

    batch_size is the number of pairs per view and step over all workers. layers, pool_lr_multiplier and
    deep_supervision belong to the weighted and the gated readout: they mix the last `layers` layers, by weights
    that are the same for all texts or told from each, and mixture, gate and heads learn at learning_rate ·
    pool_lr_multiplier. deep_supervision: a head on each mixed layer has a contrastive loss of its own in
    training, "beside" that of the readout or "instead" of it; their mean counts layer_coefficient times.
    negatives_per_definition: draw so many of a definition's hard negatives in each step, None for all.
    hn_temperature: None for `temperature`. hn_mode:
      absolute  softplus((s⁻ - hn_margin) / τ)             relative  softplus((s⁻ - s⁺ + hn_margin) / τ)
      both      absolute, and softplus(-(s⁺ - hn_margin) / τ) for the positives
      unscaled  absolute with τ = 1                        unified   negatives in the InfoNCE denominator instead,
                                                                     of their own term; unified_all: of every term
    draw: each step takes its rows from what is left of an epoch, so that none comes again before all others, or,
    by replacement, from all there are ("each_step"): 128,000 draws from 176,000 rows then meet 91,000 of them. A
    view without rows adds nothing; the others keep their weight. micro_batch: texts that pass the encoder at a
    time (docs/studies.md). rows: what an arm trains on, the lexicons' views or the comments and labels of the
    ontology that `data.ontology` names, which have no hard negatives.
    """

    train: bool = True
    readout: Literal["mean", "cls", "max", "weighted", "gated"] = "mean"  # B1, the paper's baseline
    layers: Count = 4  # table 9, the layer window
    hard_negatives: bool = False  # an arm says so
    learning_rate: Positive = 2e-5  # ours: table 9 leaves it blank; usual for this size, batch and decay
    steps: Steps = 8000  # table 9
    batch_size: Batch = 16  # table 9
    warmup: Annotated[int, Ge(0)] = 100  # table 9
    layer_decay: Annotated[float, Gt(0), Le(1)] = 0.9  # table 9, per layer
    weight_decay: NotNegative = 0.01  # table 9
    clip_norm: Positive = 1.0  # table 9
    max_length: Length = 128  # table 9, tokens
    temperature: Positive = 0.05  # table 9
    symmetric: bool = True  # ours: both directions are scored; the formula is missing from the text
    draw: Literal["each_epoch", "each_step"] = "each_epoch"  # ours: the paper does not say how rows are drawn
    rows: Literal["lexicons", "ontology"] = "lexicons"  # section 5.6: an arm of its own
    syn_weight: NotNegative = 1.0  # section 4.3: only d2d has another weight
    t2d_weight: NotNegative = 1.0  # section 4.3
    d2d_weight: NotNegative = 0.7  # section 4.3: senses of two sources are not aligned
    hn_mode: HardNegativeMode = "absolute"  # ours, docs/concept.md; unified: appendix F
    hn_margin: Annotated[float, Ge(-1), Le(2)] = 0.20  # table 9
    hn_coefficient: NotNegative = 0.5  # section 4.3
    hn_temperature: Positive | None = None  # ours
    hn_reduction: Literal["mean", "sum"] = "mean"  # ours: a sum over 80 negatives would swamp the positives
    negatives_per_definition: Count | None = None  # ours
    pool_lr_multiplier: NotNegative = 1.0  # section 4.4: the pooling head receives the base rate
    deep_supervision: Literal["none", "beside", "instead"] = "none"  # section 4.2 (M3)
    layer_coefficient: NotNegative = 1.0  # ours: the formula is missing from the text
    micro_batch: MicroBatchSize = None  # ours

    def __post_init__(self) -> None:
        check_fields(self, "train")
        if self.rows == "ontology" and self.hard_negatives:
            raise ValueError("train.hard_negatives = true\n  accepted: false with rows: ontology, which has none")
        if self.hard_negatives and not self.t2d_weight:
            raise ValueError(
                "train.hard_negatives = true\n  accepted: false with t2d_weight: 0, as they belong to definitions"
            )
        unified = self.hard_negatives and self.hn_mode in UNIFIED
        pushed = self.hard_negatives and self.hn_coefficient > 0 and not unified
        if self.train and self.batch_size == 1 and not (unified or pushed):
            raise ValueError(
                "train.batch_size = 1\n  accepted: 2 and more, or with hard_negatives: a pair is told from the"
                " others of its batch"
            )
        if self.train and self.readout in MIXTURES and self.deep_supervision == "instead" and not pushed:
            raise ValueError(
                "train.deep_supervision = 'instead'\n  accepted: beside, or hard_negatives that are pushed away"
                " by a term of their own: without either nothing trains the readout"
            )

    @property
    def weights(self) -> dict[str, float]:
        """Of the views that an arm trains on."""
        if self.rows == "ontology":
            return {"c2l": 1.0}
        return {"syn": self.syn_weight, "t2d": self.t2d_weight, "d2d": self.d2d_weight}


HARD_NEGATIVES = frozenset(
    {"negatives_per_definition"} | {name for name in Settings.__annotations__ if name[:3] == "hn_"}
)
SUPERVISED = frozenset({"deep_supervision", "layer_coefficient"})
WEIGHTS = frozenset({"syn_weight", "t2d_weight", "d2d_weight"})
MIXED = frozenset({"layers", "pool_lr_multiplier"}) | SUPERVISED
# Settings that came later: at these values an arm keeps the id that it had without them. Defaults may differ.
ADDED = {"d2d_weight": 0.7, "draw": "each_step", "rows": "lexicons", "micro_batch": None}
UNSCALED = {"hn_temperature": None}
UNPUSHED = {"hn_margin": 0.20, "hn_coefficient": 0.5, "hn_reduction": "mean", **UNSCALED}
# What a mode does not read of hard negatives: an arm has the id that it has with these values, whatever they are.
UNREAD: Mapping[str, Mapping[str, Any]] = {**dict.fromkeys(UNIFIED, UNPUSHED), "unscaled": UNSCALED}
UNTRAINED = frozenset({"train", "readout", "layers", "max_length"})


def in_bf16(settings: Settings) -> dict[str, Any]:
    """What tells a mixture of layers in bf16 from that of an older semray, which autocast rounded to bf16 too."""
    return {"layers mixed in": "fp32"} if settings.readout in MIXTURES else {}


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result: an untrained arm keeps its readout and how much text it reads.

    hn_temperature is None where it is `temperature`, however an arm says so.
    """
    kept = {**asdict(settings), **UNREAD.get(settings.hn_mode, {})}
    if settings.hn_temperature == settings.temperature:
        kept["hn_temperature"] = None
    left_out = {name for name, value in ADDED.items() if kept[name] == value}
    if not settings.train:
        left_out |= kept.keys() - UNTRAINED
    if not settings.hard_negatives:
        left_out |= HARD_NEGATIVES
    if settings.rows == "ontology":
        left_out |= WEIGHTS
    if settings.readout not in MIXTURES:
        left_out |= MIXED
    if settings.deep_supervision == "none":
        left_out |= SUPERVISED
    return {name: value for name, value in kept.items() if name not in left_out}
