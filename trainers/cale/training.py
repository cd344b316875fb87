"""Concept-aligned embeddings: occurrences of one concept close together, of the same word or of another.

Method: CALE (Liétard and Loiseau), section 4; settings: its table 6. Arms are settings: base {train: false},
layers:mid {train: false, readout: target, layers: [14, 15, 16, 17]}, cale {}, wic {pairs: same_lemma}, shuffled
{pairs: shuffled}, 1L1C {train: false, readout: lemma}.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from corpora.cale.records import CaleCorpus
    from trainers.cale.batches import CaleBatch
    from trainers.encoders.occurrence_encoder import LemmaPoints, OccurrenceEncoder
    from trainers.engine.loop import Encode
    from trainers.engine.world import Progress, World


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
    steps: int | None = None
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


def fit(
    settings: Settings, backbone: Path, corpus: CaleCorpus, seed: int, world: World
) -> tuple[OccurrenceEncoder | LemmaPoints, list[Progress]]:
    """Train an encoder from this backbone, or only read it out; the curve of an untrained arm is empty.

    Raises ValueError when settings and backbone or corpus do not go together, and Diverged.
    """
    from trainers.cale.batches import batches, steps_of
    from trainers.encoders.occurrence_encoder import LemmaPoints, OccurrenceEncoder
    from trainers.engine import loop
    from trainers.engine.optimisation import parameter_groups

    if settings.readout == "lemma":
        return LemmaPoints(), []
    loop.reset_process(seed, world)
    occurrences = OccurrenceEncoder.load(
        backbone,
        readout=settings.readout,
        layers=settings.layers,
        markers=settings.markers,
        max_length=settings.max_length,
        precision=world.precision,
    )
    encoder = occurrences.encoder.to(world.device)
    if not settings.train:
        return occurrences, []

    def terms(encode: Encode, batch: CaleBatch) -> dict[str, Tensor]:
        return loss(encode, batch, settings, world)

    steps = steps_of(settings, corpus.pairs["train"])
    curve = loop.fit(
        encoder,
        terms,
        batches(settings, corpus, occurrences.tokenise, seed, world),
        groups=parameter_groups(
            encoder,
            depth=encoder.backbone.config.num_hidden_layers,
            learning_rate=settings.learning_rate,
            layer_decay=1.0,
            weight_decay=settings.weight_decay,
        ),
        recipe=loop.Recipe(steps=steps, warmup=round(settings.warmup_ratio * steps), clip_norm=settings.clip_norm),
        seed=seed,
        world=world,
        look=partial(world.look, occurrences),
    )
    encoder.eval()
    return occurrences, curve


def loss(encode: Encode, batch: CaleBatch, settings: Settings, world: World) -> dict[str, Tensor]:
    """The contrastive term of one step; without gradient the mean distance of the pairs of one concept (pos_dist)
    and of the others (neg_dist), and the share of the others that are nearer than the margin (active_neg_share).

    A step without pairs of one kind has no figure for it. Gradients and figures are averaged over workers, and
    each divides by the count over all of them.
    """
    import torch

    from trainers import losses

    anchors, partners = encode(batch.tokens).chunk(2)  # (b, D) each
    cosines, same = losses.paired_cosines(anchors, partners), torch.from_numpy(batch.same).to(anchors.device)
    formula = losses.contrastive_printed if settings.loss == "printed" else losses.contrastive_distance
    terms = {"contrastive": world.size * formula(cosines, same, margin=settings.margin, count=batch.pairs_of_all)}
    distances = 1 - cosines.detach()
    others = batch.pairs_of_all - batch.same_of_all
    if batch.same_of_all:
        terms["pos_dist"] = world.size * distances[same].sum() / batch.same_of_all
    if others:
        terms["neg_dist"] = world.size * distances[~same].sum() / others
        terms["active_neg_share"] = world.size * (distances[~same] < settings.margin).sum() / others
    return terms
