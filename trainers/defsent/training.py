"""Sentence embeddings from definitions: a definition's vector is trained to predict its word through an LM head.

Method: DefSent (Tsukagoshi et al.), section 2.3. Comparison arm: Sentence-BERT, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from corpora.defsent.records import DefsentCorpus
    from corpora.store.telling import Tell
    from trainers.defsent.batches import LabelledBatch
    from trainers.defsent.encoder import WordEncoder
    from trainers.defsent.heads import PredictionHead
    from trainers.defsent.settings import Settings
    from trainers.encoders.encoder import Encoder
    from trainers.engine.loop import Encode
    from trainers.engine.world import Progress, World


def read(settings: Settings, folder: Path, world: World) -> WordEncoder:
    """An untrained encoder with these settings from a backbone's folder, or a saved model of this family.

    A random head is that of seed 0. Raises ValueError if the backbone lacks the head, and for a fitted head, which
    needs a corpus.
    """
    from trainers.defsent.encoder import RECORD, WordEncoder
    from trainers.engine.process import reset_process

    if (folder / RECORD).is_file():
        model = WordEncoder.load(folder)
        model.encoder.precision = world.precision
        return model.to(world.device)
    reset_process(0, world)
    encoder = _load_encoder(settings, folder, world)
    head = head_of(settings, encoder, folder, (), 0, world.tell)[0]
    return WordEncoder(encoder, head, {"head_source": settings.head_source}).to(world.device).eval()


def fit(
    settings: Settings, backbone: Path, corpus: DefsentCorpus, seed: int, world: World
) -> tuple[WordEncoder, list[Progress]]:
    """Train an encoder from this backbone. An untrained arm at most fits its head, and its curve is empty.

    Raises ValueError if settings, backbone and corpus do not go together; FrozenWeightsChanged; and as
    `engine.loop.fit`.
    """
    from trainers.defsent.encoder import WordEncoder
    from trainers.defsent.vocabulary import words_known
    from trainers.engine.process import reset_process

    reset_process(seed, world)
    encoder = _load_encoder(settings, backbone, world)
    pieces, kept = words_known(encoder.tokenizer, corpus, backbone.name)
    texts = [*corpus.rows["train"].definitions.take(kept.rows[: settings.mlm_texts]), *corpus.plain_texts]
    head, about_head = head_of(settings, encoder, backbone, texts, seed, world.tell)
    about: dict[str, Any] = {
        "head_source": settings.head_source,
        **about_head,
        "training definitions": len(kept.rows),
        "left out for their definition": kept.dropped,
        **{f"{name} definitions that training repeats": count for name, count in kept.repeated.items()},
    }
    model = WordEncoder(encoder, head, about).to(world.device)
    curve: list[Progress] = []
    if settings.train and settings.objective == "inference":
        curve = _train_on_inferences(settings, model, corpus, len(kept.rows), seed, world)
    elif settings.train:
        curve = _train_on_definitions(settings, model, corpus, kept.rows, pieces["train"], seed, world)
    return model.eval(), curve


def _load_encoder(settings: Settings, folder: Path, world: World) -> Encoder:
    """The encoder in this folder, whose tokenizer reads a text's first word like any other."""
    from trainers.defsent.vocabulary import with_leading_space
    from trainers.encoders.encoder import Encoder

    encoder = Encoder.load(
        folder, readout=settings.readout, max_length=settings.max_length, precision=world.precision
    )
    encoder.tokenizer = with_leading_space(encoder.tokenizer)
    return encoder.to(world.device)


def head_of(
    settings: Settings, encoder: Encoder, backbone: Path, texts: Sequence[str], seed: int, tell: Tell
) -> tuple[PredictionHead, dict[str, Any]]:
    """The head of these settings, and facts about it for `WordEncoder.about`. texts: the texts for "mlm_fit", of
    whose reading `tell` hears.

    Raises ValueError if the backbone lacks the head, or a fit has no texts.
    """
    from dataclasses import asdict

    from trainers.defsent import heads
    from trainers.defsent.mlm_fit import fitted_head
    from trainers.engine.streams import torch_stream

    if settings.head_source == "pretrained":
        return heads.pretrained_head(encoder, backbone), {}
    if settings.head_source == "tied_only":
        return heads.tied_head(encoder), {}
    if settings.head_source == "random":
        return heads.untrained_head(encoder, torch_stream(seed, "init", "head")), {}
    if not texts:
        raise ValueError(
            "train.head_source = 'mlm_fit'\n  accepted: where there are training definitions to fit on"
        )
    head, fitted = fitted_head(encoder, backbone, texts, epochs=settings.mlm_epochs, tell=tell)
    return head, {f"mlm {name}": value for name, value in asdict(fitted).items()}


def warm_then_constant(step: int, *, warmup: float) -> float:
    """Factor of the learning rate at a step: step / warmup, then constantly 1. The first update has factor 0.

    step counts from 0; warmup, in steps, is not rounded. Source: the authors' code; the paper says only "linear
    warm-up".
    """
    return min(1.0, step / warmup) if warmup > 0 else 1.0


def _train_on_definitions(
    settings: Settings,
    model: WordEncoder,
    corpus: DefsentCorpus,
    rows: np.ndarray,
    pieces: np.ndarray,
    seed: int,
    world: World,
) -> list[Progress]:
    from trainers.defsent.batches import definition_batches, steps_of_epoch
    from trainers.defsent.freezing import check_frozen, digest_of_frozen, freeze, trainable
    from trainers.encoders.graphs import graphs_of
    from trainers.engine import loop

    freeze(model, settings.freeze)
    before = digest_of_frozen(model)
    steps = settings.steps or settings.epochs * steps_of_epoch(len(rows), settings.batch_size)
    warmup = settings.warmup_ratio * steps
    train = corpus.rows["train"].take(rows)

    curve = loop.fit(
        model,
        partial(loss, world=world),
        definition_batches(settings, train.definitions, pieces[rows], model.encoder.tokenise, seed, world),
        groups=_adam(settings, model),
        recipe=loop.Recipe(steps=steps, clip_norm=0.0, shape=partial(warm_then_constant, warmup=warmup)),
        seed=seed,
        world=world,
        look=partial(world.look, model),
        bf16_copies=model.encoder.bf16_copies(world.device),
        graphs=graphs_of(model.encoder, world),
    )
    check_frozen(model, before)
    model.about |= {
        "learning rate": settings.rate,
        "steps": steps,
        "warm-up steps": warmup,
        "trained parameters": trainable(model),
        "frozen sha256": before,
    }
    return curve


def loss(encode: Encode, batch: LabelledBatch, world: World) -> dict[str, Tensor]:
    """The one term of a step: mean cross-entropy of the definitions' words over the whole vocabulary.

    The engine averages over workers, so each multiplies by their number and divides by the rows of all workers.
    """
    import torch.nn.functional as F

    from trainers.engine.transfers import moved

    logits = encode(batch.tokens)[: len(batch.target)]  # (b, V)
    target = moved(batch.target, logits.device)
    total = F.cross_entropy(logits, target, reduction="sum")
    return {"word_prediction": world.size * total / batch.rows_of_all}


def _train_on_inferences(
    settings: Settings, model: WordEncoder, corpus: DefsentCorpus, definitions: int, seed: int, world: World
) -> list[Progress]:
    """Train Sentence-BERT: the whole encoder, and a classifier that is then discarded."""
    from trainers.defsent.batches import inference_batches, steps_of_epoch
    from trainers.defsent.sentence_bert import SiameseEncoder, inference_loss
    from trainers.encoders.graphs import graphs_of
    from trainers.engine import loop
    from trainers.engine.streams import torch_stream

    pairs = corpus.inferences
    if pairs is None:
        raise ValueError("train.objective = 'inference', and data.nli = 'none'\n  accepted: a data.nli with pairs")
    rows, epochs = (definitions, 1) if settings.matched_budget else (len(pairs), settings.epochs)
    steps = settings.steps or epochs * steps_of_epoch(rows, settings.batch_size)
    warmup = round(settings.warmup_ratio * steps)
    model.head.requires_grad_(False)
    model.encoder.requires_grad_(True)
    siamese = SiameseEncoder(model, torch_stream(seed, "init", "classifier"))
    curve = loop.fit(
        siamese,
        partial(inference_loss, world=world),
        inference_batches(settings, pairs, model.encoder.tokenise, seed, world),
        groups=_adam(settings, siamese),
        recipe=loop.Recipe(steps=steps, warmup=warmup, clip_norm=0.0),
        seed=seed,
        world=world,
        look=partial(world.look, model),
        bf16_copies=model.encoder.bf16_copies(world.device),
        graphs=graphs_of(model.encoder, world),
    )
    model.about |= {
        "learning rate": settings.rate,
        "steps": steps,
        "warm-up steps": warmup,
        "nli_source": pairs.source,
        "nli pairs": len(pairs),
    }
    return curve


def _adam(settings: Settings, model: nn.Module) -> list[dict[str, Any]]:
    """The trainable parameters as one group without weight decay, for which AdamW is Adam."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [{"params": trained, "lr": settings.rate, "weight_decay": 0.0}]
