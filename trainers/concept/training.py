"""Concept equivalence: one place for every expression of a concept, hard negatives for what is nearly one.

L = Σ_view weight · InfoNCE(view) + hn_coefficient · L_HN
    + layer_coefficient / K · Σ_k Σ_view weight · InfoNCE(head of layer k, view)      under deep supervision
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.concept.settings import UNIFIED
from trainers.encoders.readout_names import MIXTURES

if TYPE_CHECKING:
    from torch import Tensor, nn

    from corpora.concept.records import ConceptCorpus
    from trainers.concept.batches import ConceptBatch
    from trainers.concept.settings import Settings
    from trainers.encoders.encoder import Encoder
    from trainers.encoders.second_stream import SecondStream
    from trainers.engine.loop import Encode
    from trainers.engine.world import Progress, World


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """The encoder of these settings, untrained, from a backbone's folder or from one that an encoder saved."""
    from trainers.encoders.encoder import Encoder

    encoder = Encoder.load(
        folder,
        readout=settings.readout,
        layers=settings.layers,
        max_length=settings.max_length,
        precision=world.precision,
    )
    return encoder.to(world.device)


def fit(
    settings: Settings, backbone: Path, corpus: ConceptCorpus, seed: int, world: World
) -> tuple[Encoder, list[Progress]]:
    """Train an encoder from this backbone.

    Raises ValueError if settings, backbone and corpus do not go together; and as `engine.loop.fit`.
    """
    from trainers.concept.batches import batches
    from trainers.concept.layer_heads import LayerSupervised
    from trainers.encoders.graphs import graphs_of
    from trainers.encoders.second_stream import SecondStream
    from trainers.engine import loop
    from trainers.engine.micro_batches import InParts, MicroBatch
    from trainers.engine.optimisation import parameter_groups
    from trainers.engine.process import reset_process
    from trainers.engine.streams import torch_stream

    reset_process(seed, world)
    encoder = read(settings, backbone, world)
    if encoder.layer_gate is not None and not encoder.layer_gate.trained:
        encoder.layer_gate.initialise(torch_stream(seed, "init", "layer_gate"))
    model: nn.Module = encoder
    if supervises(settings):
        model = LayerSupervised(encoder, torch_stream(seed, "init", "layer_heads"))
    micro = MicroBatch.of(settings.micro_batch, world)
    # Pairs and negatives share one lookup of word embeddings; impossible if parts of a step are encoded again in
    # the backward pass, or under ZeRO 3, which gathers the table only during the forward pass.
    one_lookup = not micro.divides and world.zero_stage < 3
    # Pairs and negatives share one pass; impossible with layer heads, which read only pairs, and in a stack, which
    # runs the layers itself. On a card they would draw other dropout in one pass than a stack draws in two.
    packed = model is encoder and encoder.packed and not world.seat and not world.on_card
    one_pass = packed and settings.hard_negatives and not micro.divides
    curve = loop.fit(
        InParts(model, micro) if micro.divides else model,
        partial(
            loss,
            settings=settings,
            world=world,
            encoder=encoder if one_lookup else None,
            second=SecondStream(encoder) if one_pass else None,
        ),
        batches(settings, corpus, encoder.tokenise, seed, world),
        groups=parameter_groups(
            model,
            depth=encoder.depth,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            layer_decay=settings.layer_decay,
            readout_multiplier=settings.pool_lr_multiplier,
        ),
        recipe=loop.Recipe(steps=settings.steps, warmup=settings.warmup, clip_norm=settings.clip_norm),
        seed=seed,
        world=world,
        look=partial(world.look, encoder),
        micro=micro,
        bf16_copies=encoder.bf16_copies(world.device, in_parts=micro.divides),
        graphs=graphs_of(encoder, world),
    )
    return encoder, curve


def supervises(settings: Settings) -> bool:
    """True if each mixed layer has a head with its own loss."""
    return settings.readout in MIXTURES and settings.deep_supervision != "none"


def loss(
    encode: Encode,
    batch: ConceptBatch,
    settings: Settings,
    world: World,
    encoder: Encoder | None = None,
    second: SecondStream | None = None,
) -> dict[str, Tensor]:
    """The weighted terms of one step: one per view, "layers" under deep supervision, and "hard_negatives".

    Each worker holds b of a view's B rows and scores them against the candidates of all workers. Negatives draw
    dropout from their own stream, so that arms with and without them share the pairs' dropout. With `second`,
    negatives are encoded in one pass with the pairs, otherwise in a pass of their own; with `encoder` the two
    passes share one lookup of word embeddings.
    """
    import torch

    from trainers.engine.transfers import moved

    supervised = supervises(settings)
    # (1 or 1 + K, 2 V b, D), (N, D)
    read, negatives = encoded(encode, batch, supervised, encoder, second)
    sides = read[0].chunk(2 * len(batch.views))  # (b, D) each: left, right per view
    owner = moved(batch.owner, read.device)
    terms: dict[str, Tensor] = {}
    if not (supervised and settings.deep_supervision == "instead"):
        terms |= view_terms(sides, batch, settings, world, negatives)
    if supervised:
        layers = [view_terms(layer.chunk(2 * len(batch.views)), batch, settings, world) for layer in read[1:]]
        own = torch.stack([term for layer in layers for term in layer.values()])
        terms["layers"] = settings.layer_coefficient * own.sum() / len(layers)
    for view, left, right in zip(batch.views, sides[::2], sides[1::2], strict=True):
        if settings.hard_negatives and view.name == "t2d" and settings.hn_mode not in UNIFIED:
            pushed = hard_negatives(left, right, negatives, owner, batch, settings)
            # Gradients are averaged over workers, and each divides by the count over all of them.
            terms["hard_negatives"] = settings.hn_coefficient * world.size * pushed
    return terms


def encoded(
    encode: Encode,
    batch: ConceptBatch,
    supervised: bool,
    encoder: Encoder | None,
    second: SecondStream | None,
) -> tuple[Tensor, Tensor]:
    """Unit vectors of the pairs, (1, 2 V b, D), or (1 + K, 2 V b, D) with layer heads, and of negatives (N, D).

    N may be 0 on a worker; it then still encodes as often as the others and returns the same terms.
    """
    from trainers.engine.streams import seed_global

    pairs, negatives, count = batch.pairs, batch.negatives, len(batch.owner)
    if second is not None and negatives is not None:
        with second.drawing(pairs, batch.stream):
            rows, others = encode(pairs, negatives).split([len(pairs), len(negatives)])
        return rows[None], others[:count]
    texts = [pairs] if negatives is None else [pairs, negatives]
    with nullcontext() if encoder is None else encoder.one_lookup(*texts):
        read = encode(pairs, heads=True) if supervised else encode(pairs)[None]
        if negatives is None:
            return read, read[0, :0]
        seed_global(batch.stream)
        return read, encode(negatives)[:count]


def view_terms(
    sides: Sequence[Tensor],
    batch: ConceptBatch,
    settings: Settings,
    world: World,
    negatives: Tensor | None = None,
) -> dict[str, Tensor]:
    """The weighted contrastive term of each view. sides: (b, D) each, left and right per view.

    negatives (N, D): this worker's, for modes that put negatives into the denominator; None for other modes.
    """
    from trainers.engine.gathering import gathered
    from trainers.engine.transfers import moved, moved_together
    from trainers.losses import info_nce_against, info_nce_directed, unified_info_nce

    terms: dict[str, Tensor] = {}
    for view, left, right in zip(batch.views, sides[::2], sides[1::2], strict=True):
        keep, own = moved_together([view.keep, view.own], left.device)
        nce: dict[str, Any] = {"temperature": settings.temperature, "keep": keep, "own": own}
        hard = negatives if settings.hard_negatives and view.name == "t2d" else None
        if hard is not None and settings.hn_mode == "unified":
            owner = moved(batch.owner, left.device)
            forward = unified_info_nce(left, gathered(right, world), hard, owner, **nce)
        elif hard is not None and settings.hn_mode == "unified_all":
            kept = moved(batch.keep_negatives, left.device)
            of_all = gathered_negatives(hard, batch.negatives_of_each, world)
            forward = info_nce_against(left, gathered(right, world), of_all, kept, **nce)
        else:
            forward = info_nce_directed(left, gathered(right, world), **nce)
        both = (
            (forward + info_nce_directed(right, gathered(left, world), **nce)) / 2
            if settings.symmetric
            else forward
        )
        terms[view.name] = view.weight * both
    return terms


def gathered_negatives(negatives: Tensor, of_each: Sequence[int], world: World) -> Tensor:
    """The negatives of all workers in rank order, which may differ in number; gradients flow back. -> (sum, D)."""
    import torch

    from trainers.engine.gathering import gathered

    if world.size == 1:
        return negatives
    most = max(of_each)
    padded = torch.cat([negatives, negatives.new_zeros(most - len(negatives), negatives.shape[1])])
    parts = gathered(padded, world).split(most) if most else [negatives]
    return torch.cat([part[:count] for part, count in zip(parts, of_each, strict=False)])


def hard_negatives(
    terms: Tensor, definitions: Tensor, negatives: Tensor, owner: Tensor, batch: ConceptBatch, settings: Settings
) -> Tensor:
    """L_HN of this worker's rows. (b, D), (b, D), (N, D), owner (N,) the row of each negative -> scalar.

    Both the term and its negative receive the gradient. A mean is over the negatives of all workers.
    """
    from trainers import losses

    temperature = settings.hn_temperature or settings.temperature
    scale: Mapping[str, Any] = {
        "margin": settings.hn_margin,
        "temperature": 1.0 if settings.hn_mode == "unscaled" else temperature,
        "reduction": settings.hn_reduction,
    }
    scores = losses.paired_cosines(terms[owner], negatives)  # (N,)
    positives = losses.paired_cosines(terms, definitions)  # (b,)
    if settings.hn_mode == "relative":
        return losses.hard_negative_gap(scores, positives[owner], count=batch.negatives_of_all, **scale)
    pushed = losses.hard_negative_bce(scores, count=batch.negatives_of_all, **scale)
    if settings.hn_mode == "both":
        return pushed + losses.positive_bce(positives, count=settings.batch_size, **scale)
    return pushed
