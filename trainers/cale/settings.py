"""What a cale study may set, and which of it can change a result.

Defaults: CALE (Liétard and Loiseau), table 6. Arms are settings: base {train: false}, layers:mid {train: false,
readout: target, layers: [14, 15, 16, 17]}, cale {}, wic {pairs: same_lemma}, shuffled {pairs: shuffled}, 1L1C
{train: false, readout: lemma}.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from trainers.engine.limits import Steps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a cale study. ValueError names a field whose value is not accepted.

    readout: "mean" of the marked sentence; for untrained arms also "target", the word's pieces in the bare
    sentence with the hidden states of `layers` averaged, and "lemma", one point for every lemma (1L1C). markers:
    tags as "plain" text or as two "added" tokens. pairs: "all", the "same_lemma" alone (Word-in-Context), or all
    with labels "shuffled" within those of one lemma and within the others. loss "printed" is the paper's misprint.
    batch_size is the number of pairs a step over all workers; steps null: every pair once.
    """

    train: bool = True
    readout: Literal["mean", "target", "lemma"] = "mean"
    layers: tuple[int, ...] = ()
    markers: Literal["plain", "added"] = "plain"
    pairs: Literal["all", "same_lemma", "shuffled"] = "all"
    loss: Literal["contrastive_distance", "printed"] = "contrastive_distance"
    margin: float = 0.7
    learning_rate: float = 6.02e-6
    warmup_ratio: float = 0.24
    weight_decay: float = 0.05
    clip_norm: float = 1.0
    batch_size: int = 32
    steps: Steps | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_length", "learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"train.{name} = {getattr(self, name)!r}\n  accepted: a number above 0")
        if not self.weight_decay >= 0:
            raise ValueError(f"train.weight_decay = {self.weight_decay!r}\n  accepted: 0 or above")
        for name, top in (("warmup_ratio", 1), ("margin", 2)):
            if not 0 <= getattr(self, name) <= top:
                raise ValueError(f"train.{name} = {getattr(self, name)!r}\n  accepted: a number from 0 to {top}")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"train.steps = {self.steps!r}\n  accepted: a number above 0, or null")
        if self.train and self.readout != "mean":
            raise ValueError(f"train.readout = {self.readout!r}\n  accepted: mean, or any with train: false")
        if (self.readout == "target") != bool(self.layers) or min(self.layers, default=1) < 1:
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
    return {name: kept[name] for name in kept if name != "layers"}
