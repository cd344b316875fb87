"""Masked-word training of a backbone on sentences, so that it can fill the masks of aligned negatives.

    train(MaskedSettings(steps=2000), "all-MiniLM-L6-v2", sentences, Path("generators/minilm"), World())

An encoder that was trained for sentences has lost its head, or never had one. Here all layers and the head learn
to name masked words; the embeddings stand still, and are what the head's output is tied to. A head that the
backbone lacks begins with the logarithm of the words' frequencies. Every chosen word is masked, since the
generator will meet nothing else: BERT's shares of random and of unchanged words are left out.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpora.store.durable import as_readable_as
from trainers.encoders.backbones import BackboneError, resolve_backbone
from trainers.encoders.masked_lm import load_masked_lm
from trainers.encoders.tokens import Tokens, own_tokens, tokenise, tokenizer_in, within
from trainers.engine import loop
from trainers.engine.streams import numpy_stream, torch_stream
from trainers.engine.transfers import moved
from trainers.san.masked_model import HEADS, head_of
from trainers.san.masked_settings import ABOUT, MaskedSettings

if TYPE_CHECKING:
    from trainers.engine.world import World

LEAST, MOST = 0.3, 0.5  # share of the words that are masked, drawn for every step
SCORED = 400 / 1024  # of a step's tokens, at most: the logits of more would be the largest thing in memory
SMOOTHING = 0.1  # added to the count of every word
HELD_OUT, HELD_OUT_MOST = 0.05, 2000  # of the sentences
CHECKPOINT_EVERY = 500  # steps


@dataclass(frozen=True)
class MaskedFit:
    """How it names masked words of sentences that it was not trained on.

    accuracy: share that it names; most_frequent: share of the most frequent word among them; loss: mean negative
    log likelihood, in nats.
    """

    sentences: int
    targets: int
    accuracy: float
    most_frequent: float
    loss: float


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """ids (B, T) with masks, attended (B, T), where (M,) of the flat B x T is masked, the words there (M,)."""

    ids: Tensor
    attended: Tensor
    where: Tensor
    words: Tensor

    def __len__(self) -> int:
        return len(self.ids)


class MaskedWords(nn.Module):
    """A masked language model of which the masked places alone are scored. (B, T), (B, T), (M,) -> (M, V)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, attended: Tensor, where: Tensor) -> Tensor:
        states = self.model.base_model(input_ids=ids, attention_mask=attended).last_hidden_state  # (B, T, D)
        logits: Tensor = head_of(self.model)(states.flatten(0, 1)[where])
        return logits.float()


def train(
    settings: MaskedSettings, backbone: str, sentences: Sequence[str], out: Path, world: World, *, name: str = ""
) -> MaskedFit:
    """Train, and write model, tokenizer and what is known of them to `out`, which appears whole or not at all.

    Beside it lies a folder `.NAME.unfinished` with checkpoints, from which a training that was ended goes on; what
    another training left there is thrown away. name: the model's `identity`. BackboneError for a backbone that
    cannot be trained so.
    """
    folder = resolve_backbone(backbone)
    loop.reset_process(settings.seed, world)
    tokenizer = tokenizer_in(folder)
    if tokenizer.mask_token_id is None:
        raise BackboneError(f"--backbone {backbone}: its tokenizer has no mask token\n  accepted: one like BERT's")
    kept, held = _parted(tokenise(tokenizer, sentences, settings.max_length), settings)
    model = _with_head(backbone, folder, kept, tokenizer, settings)
    words = MaskedWords(model)
    draft = _draft(out, name)
    loop.fit(
        words,
        loss,
        partial(batch_of, kept, tokenizer, settings, device=world.device),
        groups=_groups(model, settings),
        recipe=loop.Recipe(steps=settings.steps),
        seed=settings.seed,
        world=replace(world, scratch=draft / "checkpoints", checkpoint_every=CHECKPOINT_EVERY),
    )
    fit = measured(words, held, tokenizer, settings, device=world.device)
    model.to("cpu").save_pretrained(draft / "model")
    tokenizer.save_pretrained(draft / "model")
    about = {"id": name, "backbone": backbone, "settings": asdict(settings), **asdict(fit)}
    (draft / "model" / ABOUT).write_text(json.dumps(about, indent=1))
    as_readable_as(draft / "model")
    os.replace(draft / "model", out)
    shutil.rmtree(draft)
    return fit


def _draft(out: Path, name: str) -> Path:
    """The folder of a training that goes on, or of one that begins."""
    draft = out.with_name(f".{out.name}.unfinished")
    of = draft / "id"
    if not of.is_file() or of.read_text() != name:
        shutil.rmtree(draft, ignore_errors=True)
        (draft / "checkpoints").mkdir(parents=True)
        of.write_text(name)
    return draft


def loss(encode: loop.Encode, batch: MaskedBatch) -> dict[str, Tensor]:
    """Cross-entropy of the masked words, a mean over them."""
    return {"masked": F.cross_entropy(encode(batch.ids, batch.attended, batch.where), batch.words)}


def batch_of(tokens: Tokens, tokenizer: Any, settings: MaskedSettings, step: int, *, device: str) -> MaskedBatch:
    """The sentences of a step, each once an epoch, and which of their words are masked: of seed and step alone."""
    size = min(settings.batch_size, len(tokens))
    epoch, at = divmod(step, len(tokens) // size)
    order = numpy_stream(settings.seed, "data", epoch).permutation(len(tokens))
    rows = order[at * size : (at + 1) * size]
    return _masked(tokens.take(rows), tokenizer, numpy_stream(settings.seed, "mask", step), device)


def measured(
    words: MaskedWords, held: Tokens, tokenizer: Any, settings: MaskedSettings, *, device: str
) -> MaskedFit:
    """How well masked words of held-out sentences are named; a share of them is masked once."""
    right, total, said = 0, 0.0, []
    with torch.inference_mode():
        for start in range(0, len(held), settings.batch_size):
            rows = np.arange(start, min(start + settings.batch_size, len(held)))
            draw = numpy_stream(settings.seed, "held out", start)
            batch = _masked(held.take(rows), tokenizer, draw, device)
            logits = words(batch.ids, batch.attended, batch.where)
            right += int((logits.argmax(1) == batch.words).sum())
            total += F.cross_entropy(logits, batch.words, reduction="sum").item()
            said.append(batch.words.cpu())
    answers = torch.cat(said)
    count = len(answers)
    return MaskedFit(len(held), count, right / count, answers.bincount().max().item() / count, total / count)


def _parted(tokens: Tokens, settings: MaskedSettings) -> tuple[Tokens, Tokens]:
    """Sentences to train on and sentences to measure on."""
    order = numpy_stream(settings.seed, "held out").permutation(len(tokens))
    out = min(max(1, round(HELD_OUT * len(tokens))), HELD_OUT_MOST)
    if len(tokens) <= out:
        raise ValueError(f"--sentences: {len(tokens)} of them\n  accepted: two or more")
    return tokens.take(np.sort(order[out:])), tokens.take(np.sort(order[:out]))


def _with_head(backbone: str, folder: Path, kept: Tokens, tokenizer: Any, settings: MaskedSettings) -> Any:
    """The model, its embeddings frozen; what its head lacks is drawn from a stream of its own."""
    try:
        model, missing = load_masked_lm(folder)
    except ValueError as error:
        raise BackboneError(
            f"--backbone {backbone}: of a kind that fills no masks\n  accepted: one like bert-base-uncased"
        ) from error
    head = head_of(model)
    if head is None:
        raise BackboneError(
            f"--backbone {backbone}: a {type(model).__name__}, whose head is not where BERT or RoBERTa has it\n"
            "  accepted: a backbone like bert-base-uncased or all-MiniLM-L6-v2"
        )
    strange = [one for one in missing if not one.startswith(HEADS)]
    if strange:
        raise BackboneError(f"--backbone {backbone}: {folder} lacks {strange[0]}\n  accepted: a whole backbone")
    tied = model.get_input_embeddings().weight
    if missing:
        draw = torch_stream(settings.seed, "init")
        with torch.no_grad():
            for parameter in head.parameters():
                if parameter is not tied and parameter.ndim > 1:
                    parameter.normal_(0.0, model.config.initializer_range, generator=draw)
            model.get_output_embeddings().bias.copy_(_log_frequencies(kept, len(tied), tokenizer))
    for parameter in model.base_model.embeddings.parameters():
        parameter.requires_grad_(False)
    return model


def _log_frequencies(tokens: Tokens, size: int, tokenizer: Any) -> Tensor:
    """Logarithms of the shares of words in sentences, (V,)."""
    counts = np.bincount(tokens.ids[own_tokens(tokens, tokenizer)], minlength=size) + SMOOTHING
    return torch.from_numpy(np.log(counts / counts.sum())).float()


def _groups(model: Any, settings: MaskedSettings) -> list[dict[str, Any]]:
    """The head at its rate, the layers at theirs; nothing is decayed."""
    head = {id(one): one for one in head_of(model).parameters() if one.requires_grad}
    layers = [one for one in model.parameters() if one.requires_grad and id(one) not in head]
    return [
        {"params": layers, "lr": settings.learning_rate, "weight_decay": 0.0},
        {"params": list(head.values()), "lr": settings.head_rate, "weight_decay": 0.0},
    ]


def _masked(tokens: Tokens, tokenizer: Any, draw: np.random.Generator, device: str) -> MaskedBatch:
    """A share of the words masked, no more than can be scored, and at least one where there is any."""
    own = own_tokens(tokens, tokenizer)
    share = draw.uniform(LEAST, MOST)
    count = min(max(1, round(share * len(own))), max(1, math.floor(SCORED * len(tokens.ids))))
    at = np.sort(draw.permutation(own)[:count])
    text = np.repeat(np.arange(len(tokens)), tokens.lengths)
    column = within(tokens.lengths)
    width = int(tokens.lengths.max())
    ids = np.full((len(tokens), width), tokenizer.pad_token_id, np.int64)
    ids[text, column] = np.where(np.isin(np.arange(len(tokens.ids)), at), tokenizer.mask_token_id, tokens.ids)
    attended = (np.arange(width) < tokens.lengths[:, None]).astype(np.int64)
    where = text[at] * width + column[at]
    return MaskedBatch(*(moved(one, torch.device(device)) for one in (ids, attended, where, tokens.ids[at])))
