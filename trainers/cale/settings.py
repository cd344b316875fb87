"""What a cale study may set, and which of it can change a result.

Table 6 is that of CALE (Liétard and Loiseau), appendix B. Arms are settings: base {train: false}, layers:mid
{train: false, readout: target, layers: [14, 15, 16, 17]}, cale {}, wic {pairs: same_lemma}, shuffled
{pairs: shuffled}, 1L1C {train: false, readout: lemma}.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from corpora.store.fields import Count, Length, NotNegative, Positive, check_fields
from trainers.engine.limits import Batch, MicroBatchSize, Steps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a cale study. ValueError names a field whose value is not accepted.

    readout: "mean" of the marked sentence; for untrained arms also "target", the word's pieces in the bare
    sentence with the hidden states of `layers` averaged, and "lemma", one point for every lemma (1L1C). markers:
    tags as "plain" text or as two "added" tokens. pairs: "all", the "same_lemma" alone (Word-in-Context), or all
    with labels "shuffled" within those of one lemma and within the others. loss "printed" is the paper's misprint.
    batch_size is the number of pairs a step over all workers; steps null: every pair once.
    micro_batch: sentences that pass the encoder at a time (docs/studies.md).
    """

    train: bool = True
    readout: Literal["mean", "target", "lemma"] = "mean"  # section 4: a SentenceBERT model
    layers: tuple[Count, ...] = ()  # none: of the readout target alone
    markers: Literal["plain", "added"] = "plain"  # ours: the paper does not say
    pairs: Literal["all", "same_lemma", "shuffled"] = "all"  # section 4; the others are controls
    loss: Literal["contrastive_distance", "printed"] = "contrastive_distance"  # section 4, as its prose says
    margin: Annotated[float, Ge(0), Le(2)] = 0.7  # table 6
    learning_rate: Positive = 6.02e-6  # table 6
    warmup_ratio: Annotated[float, Ge(0), Le(1)] = 0.24  # table 6
    weight_decay: NotNegative = 0.05  # table 6
    clip_norm: Positive = 1.0  # ours: the paper gives none
    batch_size: Batch = 32  # ours: the paper gives none
    steps: Steps | None = None  # table 6: one epoch
    max_length: Length = 128  # tokens; ours
    micro_batch: MicroBatchSize = None  # ours

    def __post_init__(self) -> None:
        check_fields(self, "train")
        if self.train and self.readout != "mean":
            raise ValueError(f"train.readout = {self.readout!r}\n  accepted: mean, or any with train: false")
        if (self.readout == "target") != bool(self.layers):
            raise ValueError(
                f"train.layers = {list(self.layers)!r}\n  accepted: with readout target, and only there, a list of"
                " layers counted from 1"
            )


READ = {
    "mean": ("train", "readout", "markers", "max_length"),
    "target": ("train", "readout", "layers", "max_length"),
    "lemma": ("train", "readout"),
}


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result: an untrained arm keeps how it reads a word, and how much text."""
    kept = asdict(settings)
    if not settings.train:
        return {name: kept[name] for name in READ[settings.readout]}
    unread = {"layers"} | ({"micro_batch"} if settings.micro_batch is None else set())
    return {name: kept[name] for name in kept if name not in unread}
