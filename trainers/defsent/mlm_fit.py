"""A word-prediction head for a backbone that has none, fitted on masked words of the training definitions.

The backbone is frozen, so texts are masked and encoded once, and the head is trained on the states of the masked
tokens. All runs of a backbone and corpus share one fit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from corpora.store.cache import entry, key_of
from corpora.store.telling import Tell, counted, unheard
from trainers.defsent.heads import PredictionHead, untrained_head
from trainers.encoders.backbones import backbone_fingerprint
from trainers.encoders.tokens import Tokens, own_tokens, tokenizer_in, within
from trainers.engine.optimisation import schedule
from trainers.engine.streams import numpy_stream, torch_stream

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from trainers.encoders.encoder import Encoder

FORMAT = 1  # raised whenever the same texts and settings would give another head
SEED = 0  # of every draw, as runs of all seeds share the head
MASKED = 2  # tokens per text, at most
TO_MASK, TO_RANDOM = 0.8, 0.1  # shares of the chosen tokens; the rest is left unchanged
HELD_OUT = 0.05  # of the masked tokens
LEARNING_RATE, WEIGHT_DECAY, BATCH, WARMUP = 1e-3, 0.01, 256, 0.1
SMOOTHING = 0.1  # added to the count of every word in the bias
PORTION = 4096  # texts encoded at once
LEAST_RATIO = 2.0  # least accuracy of a usable head, as a multiple of always predicting the most frequent word
FILE, ABOUT = "head.safetensors", "about.json"


@dataclass(frozen=True, kw_only=True)
class HeadFit:
    """Accuracy and loss of a head on held-out masked words. most_frequent: share of the most frequent of them."""

    texts: int
    targets: int
    accuracy: float
    loss: float
    most_frequent: float

    @property
    def usable(self) -> bool:
        return self.accuracy >= LEAST_RATIO * self.most_frequent


def check_maskable(folder: Path) -> None:
    """Raise ValueError for a backbone whose tokenizer has no mask token."""
    if tokenizer_in(folder).mask_token_id is None:
        raise ValueError(
            f"train.head_source = 'mlm_fit', and the tokenizer of {folder.name} has no mask token\n"
            "  accepted: a tokenizer that has one, or head_source tied_only or random"
        )


def fitted_head(
    encoder: Encoder, folder: Path, texts: Sequence[str], *, epochs: int, tell: Tell
) -> tuple[PredictionHead, HeadFit]:
    """The head for this backbone and these texts, read from the cache or fitted.

    texts: training definitions and plain text, without texts of dev, test or STS tasks. tell: hears, in words, how
    far a fit is. Raises ValueError if the fitted head is not `usable`.
    """
    digest = hashlib.sha256("\x00".join(texts).encode()).hexdigest()
    key = key_of(
        {
            "format": FORMAT,
            "backbone": backbone_fingerprint(folder),
            "max_length": encoder.max_length,
            "precision": encoder.precision,
            "texts": digest,
            "epochs": epochs,
        }
    )

    def build(place: Path) -> None:
        from safetensors.torch import save_file

        head, fitted = fit_head(encoder, texts, epochs=epochs, tell=tell)
        kept = {name: tensor.cpu().contiguous() for name, tensor in head.state_dict().items() if name != "decoder"}
        save_file(kept, place / FILE)
        (place / ABOUT).write_text(json.dumps(asdict(fitted), indent=1))

    place, _ = entry("defsent-heads", key, build, tell)
    from safetensors.torch import load_file

    fitted = HeadFit(**json.loads((place / ABOUT).read_text()))
    if not fitted.usable:
        raise ValueError(
            f"train.head_source = 'mlm_fit': the head fitted on {fitted.texts} texts names {fitted.accuracy:.3f}"
            f" of held-out masked words, and always saying the most frequent one {fitted.most_frequent:.3f}\n"
            f"  accepted: at least {LEAST_RATIO:g} times as many; more mlm_texts, more mlm_epochs, or"
            " data.plain_text"
        )
    head = untrained_head(encoder, torch_stream(SEED, "mlm", "init"))
    head.load_state_dict(load_file(place / FILE), strict=False)
    return head, fitted


def fit_head(
    encoder: Encoder, texts: Sequence[str], *, epochs: int, tell: Tell = unheard
) -> tuple[PredictionHead, HeadFit]:
    """Fit transform and bias; encoder and decoder are frozen. AdamW with linear warm-up and decay to 0."""
    states, targets = masked_states(encoder, texts, tell)
    order = torch.from_numpy(numpy_stream(SEED, "mlm", "held out").permutation(len(targets)))
    count = max(1, round(HELD_OUT * len(targets)))
    held, kept = order[:count], order[count:]
    head = untrained_head(encoder, torch_stream(SEED, "mlm", "init")).to(encoder.device)
    assert head.transform is not None
    assert head.bias is not None
    counts = torch.bincount(targets[kept], minlength=len(head.bias)).float() + SMOOTHING
    with torch.no_grad():
        head.bias.copy_((counts / counts.sum()).log())
    decoder = head.decoder.detach()
    trained = [*head.transform.parameters(), head.bias]
    groups = [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [parameter for parameter in trained if parameter.ndim == 1], "weight_decay": 0.0},
    ]
    batches = -(-len(kept) // BATCH)
    steps = epochs * batches
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: schedule(step, steps=steps, warmup=round(WARMUP * steps))
    )
    with torch.enable_grad():
        for epoch in range(epochs):
            tell(f"fitting the head to masked words, {epoch} of {epochs} epochs done")
            shuffled = kept[numpy_stream(SEED, "mlm", "order", epoch).permutation(len(kept))]
            for rows in shuffled.split(BATCH):
                logits = F.linear(head.transformed(states[rows]), decoder, head.bias)
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(logits, targets[rows]).backward()
                optimizer.step()
                rates.step()
    accuracy, loss = _held_out(head, states, targets, held)
    frequent = torch.bincount(targets[held]).max().item() / len(held)
    fitted = HeadFit(
        texts=len(texts), targets=len(targets), accuracy=accuracy, loss=loss, most_frequent=float(frequent)
    )
    return head.cpu(), fitted


def _held_out(head: PredictionHead, states: Tensor, targets: Tensor, held: Tensor) -> tuple[float, float]:
    """Accuracy and mean cross-entropy on the rows `held`."""
    right, loss = 0, 0.0
    with torch.inference_mode():
        for rows in held.split(BATCH):
            logits = head(states[rows])
            right += int((logits.argmax(1) == targets[rows]).sum())
            loss += F.cross_entropy(logits, targets[rows], reduction="sum").item()
    return right / len(held), loss / len(held)


def masked_states(encoder: Encoder, texts: Sequence[str], tell: Tell = unheard) -> tuple[Tensor, Tensor]:
    """States of the masked tokens of these texts, and their true ids. -> (K, D), (K,)."""
    states, targets, count = [], [], counted("reading texts with masked words", len(texts), tell)
    for start in range(0, len(texts), PORTION):
        tokens = encoder.tokenise(texts[start : start + PORTION])
        masked, places = mask_tokens(
            tokens, encoder.tokenizer, encoder.backbone.config.vocab_size, numpy_stream(SEED, "mlm", "mask", start)
        )
        states.append(encoder.states(masked)[torch.from_numpy(places).to(encoder.device)].clone())
        targets.append(torch.from_numpy(tokens.ids[places]))
        count(len(tokens))
    return torch.cat(states), torch.cat(targets).to(encoder.device)


def mask_tokens(
    tokens: Tokens, tokenizer: PreTrainedTokenizerBase, vocabulary: int, draw: np.random.Generator
) -> tuple[Tokens, np.ndarray]:
    """The texts with up to MASKED tokens each replaced, and the ascending places of these. -> Tokens, (K,).

    Of the chosen tokens 80 % become the mask token, 10 % a random entry of the vocabulary, and 10 % stay.
    """
    own = own_tokens(tokens, tokenizer)
    text = np.repeat(np.arange(len(tokens)), tokens.lengths)[own]
    order = np.lexsort((draw.random(len(own)), text))  # texts in order, a random order within each
    places = np.sort(own[order[within(np.bincount(text, minlength=len(tokens))) < MASKED]])
    fate, random = draw.random(len(places)), draw.integers(0, vocabulary, len(places))
    ids = tokens.ids.copy()
    ids[places] = np.where(
        fate < TO_MASK, tokenizer.mask_token_id, np.where(fate < TO_MASK + TO_RANDOM, random, ids[places])
    )
    return Tokens(ids, tokens.lengths, tokens.truncated), places
