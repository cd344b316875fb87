"""Trains a backbone to predict masked words of sentences, so that it can generate aligned negatives.

    train(MaskedSettings(steps=2000), "all-MiniLM-L6-v2", sentences, Path("generators/minilm"), World())

Sentence encoders usually have no masked-LM head. All layers and the head are trained; the embeddings, to which
the head's output is tied, are frozen. A new head starts with a bias of the words' log frequencies. Every chosen
word is masked, as generation meets only masks: BERT's shares of random and of unchanged words are left out.
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
from trainers.engine.process import reset_process
from trainers.engine.streams import numpy_stream, torch_stream
from trainers.engine.transfers import moved
from trainers.san.masked_model import HEADS, head_of
from trainers.san.masked_settings import ABOUT, MaskedSettings

if TYPE_CHECKING:
    from trainers.engine.world import World

LEAST, MOST = 0.3, 0.5  # share of the words that are masked, drawn for every step
SCORED = 400 / 1024  # largest share of a step's tokens that is masked, as their logits take the most memory
SMOOTHING = 0.1  # added to the count of every word
HELD_OUT, HELD_OUT_MOST = 0.05, 2000  # share of the sentences, and their largest number
CHECKPOINT_EVERY = 500  # steps


@dataclass(frozen=True)
class MaskedFit:
    """How well the model predicts masked words (targets) of held-out sentences.

    most_frequent: share of the most frequent word among the targets. loss: mean negative log likelihood, in nats.
    """

    sentences: int
    targets: int
    accuracy: float
    most_frequent: float
    loss: float


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """ids (B, T) with masks. attended (B, T): not padding. where (M,): masked places of flat ids. words (M,)."""

    ids: Tensor
    attended: Tensor
    where: Tensor
    words: Tensor

    def __len__(self) -> int:
        return len(self.ids)


class MaskedWords(nn.Module):
    """A masked language model that computes logits at masked places only. (B, T), (B, T), (M,) -> (M, V)."""

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
    """Train, and write model, tokenizer and a record of the training to `out`, all at once by a rename.

    Checkpoints are kept in `.NAME.unfinished` beside it, from which an interrupted training resumes; those of
    another training are removed. name: the model's `identity`. Raises BackboneError for an unsuitable backbone,
    and ValueError for fewer than two sentences.
    """
    folder = resolve_backbone(backbone)
    reset_process(settings.seed, world)
    tokenizer = tokenizer_in(folder)
    if tokenizer.mask_token_id is None:
        raise BackboneError(f"--backbone {backbone}: its tokenizer has no mask token\n  accepted: one like BERT's")
    training, held_out = _split(tokenise(tokenizer, sentences, settings.max_length), settings)
    model = _load_with_head(backbone, folder, training, tokenizer, settings)
    words = MaskedWords(model)
    draft = _draft(out, name)
    loop.fit(
        words,
        loss,
        partial(batch_of, training, tokenizer, settings, device=world.device),
        groups=_groups(model, settings),
        recipe=loop.Recipe(steps=settings.steps),
        seed=settings.seed,
        world=replace(world, scratch=draft / "checkpoints", checkpoint_every=CHECKPOINT_EVERY),
    )
    fit = measured(words, held_out, tokenizer, settings, device=world.device)
    model.to("cpu").save_pretrained(draft / "model")
    tokenizer.save_pretrained(draft / "model")
    about = {"id": name, "backbone": backbone, "settings": asdict(settings), **asdict(fit)}
    (draft / "model" / ABOUT).write_text(json.dumps(about, indent=1))
    as_readable_as(draft / "model")
    os.replace(draft / "model", out)
    shutil.rmtree(draft)
    return fit


def _draft(out: Path, name: str) -> Path:
    """The folder `.NAME.unfinished`, emptied unless it belongs to an interrupted training of this name."""
    draft = out.with_name(f".{out.name}.unfinished")
    id_file = draft / "id"
    if not id_file.is_file() or id_file.read_text() != name:
        shutil.rmtree(draft, ignore_errors=True)
        (draft / "checkpoints").mkdir(parents=True)
        id_file.write_text(name)
    return draft


def loss(encode: loop.Encode, batch: MaskedBatch) -> dict[str, Tensor]:
    """Mean cross-entropy of the masked words."""
    return {"masked": F.cross_entropy(encode(batch.ids, batch.attended, batch.where), batch.words)}


def batch_of(tokens: Tokens, tokenizer: Any, settings: MaskedSettings, step: int, *, device: str) -> MaskedBatch:
    """The masked sentences of a step, which depend on seed and step alone. Each sentence occurs once an epoch."""
    size = min(settings.batch_size, len(tokens))
    epoch, at = divmod(step, len(tokens) // size)
    order = numpy_stream(settings.seed, "data", epoch).permutation(len(tokens))
    rows = order[at * size : (at + 1) * size]
    return _masked(tokens.take(rows), tokenizer, numpy_stream(settings.seed, "mask", step), device)


def measured(
    words: MaskedWords, held_out: Tokens, tokenizer: Any, settings: MaskedSettings, *, device: str
) -> MaskedFit:
    """The fit on held-out sentences, a share of whose words is masked once."""
    right, total, targets = 0, 0.0, []
    with torch.inference_mode():
        for start in range(0, len(held_out), settings.batch_size):
            rows = np.arange(start, min(start + settings.batch_size, len(held_out)))
            draw = numpy_stream(settings.seed, "held out", start)
            batch = _masked(held_out.take(rows), tokenizer, draw, device)
            logits = words(batch.ids, batch.attended, batch.where)
            right += int((logits.argmax(1) == batch.words).sum())
            total += F.cross_entropy(logits, batch.words, reduction="sum").item()
            targets.append(batch.words.cpu())
    words_there = torch.cat(targets)
    count = len(words_there)
    most_frequent = words_there.bincount().max().item() / count
    return MaskedFit(len(held_out), count, right / count, most_frequent, total / count)


def _split(tokens: Tokens, settings: MaskedSettings) -> tuple[Tokens, Tokens]:
    """Training sentences and held-out sentences. Raises ValueError for fewer than two."""
    order = numpy_stream(settings.seed, "held out").permutation(len(tokens))
    count = min(max(1, round(HELD_OUT * len(tokens))), HELD_OUT_MOST)
    if len(tokens) <= count:
        raise ValueError(f"--sentences: {len(tokens)} of them\n  accepted: two or more")
    return tokens.take(np.sort(order[count:])), tokens.take(np.sort(order[:count]))


def _load_with_head(
    backbone: str, folder: Path, training: Tokens, tokenizer: Any, settings: MaskedSettings
) -> Any:
    """The backbone with frozen embeddings. If weights of the head are missing, it is drawn anew."""
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
    lacking = [weight for weight in missing if not weight.startswith(HEADS)]
    if lacking:
        raise BackboneError(f"--backbone {backbone}: {folder} lacks {lacking[0]}\n  accepted: a whole backbone")
    tied = model.get_input_embeddings().weight
    if missing:
        draw = torch_stream(settings.seed, "init")
        with torch.no_grad():
            for parameter in head.parameters():
                if parameter is not tied and parameter.ndim > 1:
                    parameter.normal_(0.0, model.config.initializer_range, generator=draw)
            model.get_output_embeddings().bias.copy_(_log_frequencies(training, len(tied), tokenizer))
    for parameter in model.base_model.embeddings.parameters():
        parameter.requires_grad_(False)
    return model


def _log_frequencies(tokens: Tokens, size: int, tokenizer: Any) -> Tensor:
    """Smoothed log frequency of each vocabulary entry in these sentences, (V,)."""
    counts = np.bincount(tokens.ids[own_tokens(tokens, tokenizer)], minlength=size) + SMOOTHING
    return torch.from_numpy(np.log(counts / counts.sum())).float()


def _groups(model: Any, settings: MaskedSettings) -> list[dict[str, Any]]:
    """Layers and head as groups with their own learning rates, without weight decay."""
    head = {id(weight): weight for weight in head_of(model).parameters() if weight.requires_grad}
    layers = [weight for weight in model.parameters() if weight.requires_grad and id(weight) not in head]
    return [
        {"params": layers, "lr": settings.learning_rate, "weight_decay": 0.0},
        {"params": list(head.values()), "lr": settings.head_rate, "weight_decay": 0.0},
    ]


def _masked(tokens: Tokens, tokenizer: Any, draw: np.random.Generator, device: str) -> MaskedBatch:
    """Mask a random share of the words: at least one, and at most SCORED of the tokens."""
    own = own_tokens(tokens, tokenizer)
    share = draw.uniform(LEAST, MOST)
    count = min(max(1, round(share * len(own))), max(1, math.floor(SCORED * len(tokens.ids))))
    places = np.sort(draw.permutation(own)[:count])
    text = np.repeat(np.arange(len(tokens)), tokens.lengths)
    column = within(tokens.lengths)
    width = int(tokens.lengths.max())
    ids = np.full((len(tokens), width), tokenizer.pad_token_id, np.int64)
    ids[text, column] = np.where(np.isin(np.arange(len(tokens.ids)), places), tokenizer.mask_token_id, tokens.ids)
    attended = (np.arange(width) < tokens.lengths[:, None]).astype(np.int64)
    where = text[places] * width + column[places]
    arrays = (ids, attended, where, tokens.ids[places])
    return MaskedBatch(*(moved(array, torch.device(device)) for array in arrays))
