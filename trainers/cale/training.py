"""Concept-aligned embeddings: occurrences of one concept close together, of the same word or of another.

Method: CALE (Liétard and Loiseau), section 4.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from corpora.cale.records import CaleCorpus
    from trainers.cale.batches import CaleBatch
    from trainers.cale.settings import Settings
    from trainers.encoders.occurrence_encoder import LemmaPoints, OccurrenceEncoder
    from trainers.engine.loop import Encode
    from trainers.engine.world import Progress, World


def read(settings: Settings, folder: Path, world: World) -> OccurrenceEncoder | LemmaPoints:
    """The encoder of these settings, untrained, from a backbone's folder or from one that an encoder saved."""
    from trainers.encoders.occurrence_encoder import LemmaPoints, OccurrenceEncoder

    if settings.readout == "lemma":
        return LemmaPoints()
    occurrences = OccurrenceEncoder.load(
        folder,
        readout=settings.readout,
        layers=settings.layers,
        markers=settings.markers,
        max_length=settings.max_length,
        precision=world.precision,
    )
    occurrences.encoder.to(world.device)
    return occurrences


def fit(
    settings: Settings, backbone: Path, corpus: CaleCorpus, seed: int, world: World
) -> tuple[OccurrenceEncoder, list[Progress]]:
    """Train an encoder from this backbone.

    Raises ValueError if settings, backbone and corpus do not go together; and as `engine.loop.fit`.
    """
    from trainers.cale.batches import batches, steps_of
    from trainers.encoders.graphs import graphs_of
    from trainers.encoders.occurrence_encoder import OccurrenceEncoder
    from trainers.engine import loop
    from trainers.engine.micro_batches import InParts, MicroBatch
    from trainers.engine.optimisation import parameter_groups
    from trainers.engine.process import reset_process

    reset_process(seed, world)
    occurrences = read(settings, backbone, world)
    assert isinstance(occurrences, OccurrenceEncoder), "settings let no arm learn a readout by lemma"
    encoder, steps = occurrences.encoder, steps_of(settings, corpus.pairs["train"])
    micro = MicroBatch.of(settings.micro_batch, world)
    curve = loop.fit(
        InParts(encoder, micro) if micro.divides else encoder,
        partial(loss, settings=settings, world=world),
        batches(settings, corpus, occurrences.tokenise, seed, world),
        groups=parameter_groups(
            encoder,
            depth=encoder.depth,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
        ),
        recipe=loop.Recipe(steps=steps, warmup=round(settings.warmup_ratio * steps), clip_norm=settings.clip_norm),
        seed=seed,
        world=world,
        look=partial(world.look, occurrences),
        micro=micro,
        bf16_copies=encoder.bf16_copies(world.device, in_parts=micro.divides),
        graphs=graphs_of(encoder, world),
    )
    return occurrences, curve


def loss(encode: Encode, batch: CaleBatch, settings: Settings, world: World) -> dict[str, Tensor]:
    """The contrastive term of one step, and figures without gradient: the mean distance of pairs of one concept
    (pos_dist) and of the others (neg_dist), and the share of the others nearer than the margin (active_neg_share).

    A step without pairs of a kind lacks its figures. The engine averages over workers, so each worker multiplies
    by their number and divides by the count over all of them.
    """
    import numpy as np

    from trainers import losses
    from trainers.engine.transfers import moved

    anchors, partners = encode(batch.tokens).chunk(2)  # (b, D) each
    cosines, same = losses.paired_cosines(anchors, partners), moved(batch.same, anchors.device)
    formula = losses.contrastive_printed if settings.loss == "printed" else losses.contrastive_distance
    terms = {"contrastive": world.size * formula(cosines, same, margin=settings.margin, count=batch.pairs_of_all)}
    distances = 1 - cosines.detach()
    others = batch.pairs_of_all - batch.same_of_all
    if batch.same_of_all:
        near = distances[moved(np.flatnonzero(batch.same), distances.device)]  # by a mask it would wait for a GPU
        terms["pos_dist"] = world.size * near.sum() / batch.same_of_all
    if others:
        apart = distances[moved(np.flatnonzero(~batch.same), distances.device)]
        terms["neg_dist"] = world.size * apart.sum() / others
        terms["active_neg_share"] = world.size * (apart < settings.margin).sum() / others
    return terms
