"""A masked language model that generates aligned negatives by filling masked positions.

    model = MaskedModel.load("bert-base-uncased", lexicon.resolve, device="cpu")

Departures from the released code, which takes the most likely token at every position of batches of 64 sentences:
sentences are not padded; the head computes masked positions only; and a piece is filled only by an entry of its
kind (beginning a word, or continuing it), so that a word stays a word.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpora.san.importance import SPECIAL
from corpora.san.lexicon import Resolve, tags_of
from corpora.san.mask_predict import Batch, TaggedTokens, ends_marked
from corpora.store.cache import key_of
from corpora.store.places import named_path
from trainers.encoders.backbones import BackboneError, backbone_fingerprint, resolve_backbone
from trainers.encoders.masked_lm import load_masked_lm
from trainers.encoders.tokens import tokenizer_in
from trainers.engine.transfers import moved
from trainers.engine.world import Precision
from trainers.san.masked_states import states_at, unpad

HEADS = ("cls", "lm_head")  # attributes that hold the head in models like BERT and RoBERTa
FILLING = 2  # part of every key: raise it whenever a model of the same files would fill otherwise
BUDGETS = {"cpu": 2048, "cuda": 65_536}  # tokens of a batch
ROWS = {"cpu": 256, "cuda": 8192}  # positions that the head computes at once: their logits take the most memory


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entries of a tokenizer. surfaces: their text without the tokenizer's mark. initial (V,): begins a word.

    fills (V,) bool: may fill a mask, as it is not special, not reserved and no single symbol outside ASCII.
    byte_level: the tokenizer marks beginnings of words, not continuations.
    """

    surfaces: tuple[str, ...]
    initial: np.ndarray
    fills: np.ndarray
    byte_level: bool


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A mask_predict.Generator. Its precision is part of its name, as it can change fillings."""

    name: str
    fingerprint: str
    model: Any
    tokenizer: Any
    vocabulary: Vocabulary
    tags: np.ndarray
    device: str

    @staticmethod
    def load(name: str, resolve: Resolve, *, device: str, precision: Precision = "fp32") -> MaskedModel:
        """Load a backbone. BackboneError if it is not found, or lacks a masked-LM head or a fast tokenizer."""
        folder = resolve_backbone(name)
        tokenizer = tokenizer_in(folder)
        try:
            model, missing = load_masked_lm(folder)
        except ValueError as error:
            raise _unfit(name, folder, "is of a kind that fills no masks") from error
        if missing:
            raise _unfit(name, folder, f"lacks {missing[0]} of the head that fills masks")
        if head_of(model) is None:
            raise _unfit(
                name, folder, f"is a {type(model).__name__}, whose head is not where BERT or RoBERTa has it"
            )
        if not tokenizer.is_fast or tokenizer.mask_token_id is None:
            raise _unfit(name, folder, "has no tokenizer with places in the text and a mask token")
        model = model.to(device, torch.bfloat16 if precision == "bf16" else torch.float32)
        model = model.eval().requires_grad_(False)
        unpad(model)
        tokenizer.backend_tokenizer.no_padding()  # some folders set their tokenizers to pad and cut
        tokenizer.backend_tokenizer.no_truncation()
        vocabulary = vocabulary_of(tokenizer)
        tags = tags_of(vocabulary.surfaces, resolve, initial=vocabulary.initial)
        tags[list(tokenizer.all_special_ids)] = SPECIAL
        return MaskedModel(
            f"masked language model {name}", model_key(name), model, tokenizer, vocabulary, tags, device
        )

    @property
    def surfaces(self) -> Sequence[str]:
        return self.vocabulary.surfaces

    @property
    def budget(self) -> int:
        return BUDGETS[torch.device(self.device).type]

    def encode(self, texts: Sequence[str], most: int) -> list[TaggedTokens]:
        """Tokenise texts, at most `most` tokens each, and cut them so that tokens added by `fill` have room.

        A byte-level tokenizer gets a blank before the text, so that the first word is tokenised like any other.
        """
        shift = int(self.vocabulary.byte_level)
        given = self.tokenizer.backend_tokenizer.encode_batch(
            [" " * shift + text for text in texts], add_special_tokens=False
        )
        found = []
        for text, encoding in zip(texts, given, strict=True):
            cut = min(most, self._room - (not ends_marked(text)))
            ids = np.array(encoding.ids[:cut], np.int32)
            start, end = np.array(encoding.offsets[:cut], np.int32).reshape(-1, 2).T
            found.append(
                TaggedTokens(ids, self.tags[ids], np.maximum(start - shift, 0), np.maximum(end - shift, 0))
            )
        return found

    def fill(self, batch: Batch, masked: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        """As Generator.fill. A position whose kind has no permitted entry keeps its token."""
        if not masked.any():
            return batch.ids
        filled = batch.ids.copy()
        rows, places = np.nonzero(masked)
        begins = self.vocabulary.initial[batch.ids[rows, places]]  # (M,) the kind that each filling must have
        most = ROWS[torch.device(self.device).type]
        with torch.inference_mode():
            states = states_at(self.model, *self._framed(batch, masked), rows, places + 1)
            for filler in self._fillers:
                own = np.flatnonzero(begins == filler.initial)
                for part in np.split(own, range(most, len(own), most)) if len(filler.entries) else ():
                    row, place = rows[part], places[part]
                    drawn = None if noise is None else moved(noise[row, place], states.device)
                    best = _best(filler.logits(states[moved(part, states.device)]), drawn)
                    filled[row, place] = filler.entries[best]
        return filled

    def _framed(self, batch: Batch, masked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Token ids for the model, as wide as the longest needs, and their attention mask, (B, T + 2 or 3) each.

        Special tokens are put before and after each sentence; a sentence without a final punctuation mark gets a
        full stop, which is not part of the batch.
        """
        tokenizer = self.tokenizer
        count, width = batch.ids.shape
        first, last = self._ends
        read = np.full((count, width + 3), tokenizer.pad_token_id, np.int64)
        read[:, 0] = first
        read[:, 1 : width + 1] = np.where(masked, tokenizer.mask_token_id, batch.ids)
        columns, lengths = np.arange(width + 3), batch.lengths[:, None]
        read[columns > lengths] = tokenizer.pad_token_id
        stop = np.where(batch.marked, 0, 1)[:, None]
        read[(columns == lengths + 1) & (stop == 1)] = self._full_stop
        read[columns == lengths + 1 + stop] = last
        attended = columns <= lengths + 1 + stop
        used = int(attended.sum(1).max())
        return read[:, :used], attended[:, :used]

    @cached_property
    def _fillers(self) -> tuple[_Filler, _Filler]:
        """The fillers for pieces inside a word, and for pieces that begin a word."""
        initial, fills = self.vocabulary.initial, self.vocabulary.fills
        inside, beginning = np.flatnonzero(fills & ~initial), np.flatnonzero(fills & initial)
        return _Filler.of(self.model, inside, initial=False), _Filler.of(self.model, beginning, initial=True)

    @cached_property
    def _ends(self) -> tuple[int, int]:
        around = self.tokenizer("")["input_ids"]
        return around[0], around[-1]

    @cached_property
    def _room(self) -> int:
        """The number of tokens that the model has positions for, without special ones; unlimited without table."""
        table = getattr(getattr(self.model.base_model, "embeddings", None), "position_embeddings", None)
        if table is None:
            return sys.maxsize
        before = 0 if table.padding_idx is None else table.padding_idx + 1  # RoBERTa's start after padding's
        return int(table.num_embeddings - before - 2)

    @cached_property
    def _full_stop(self) -> int:
        return int(self.tokenizer.convert_tokens_to_ids("."))


@dataclass(frozen=True, eq=False)
class _Filler:
    """The masked-LM head reduced to the entries that may fill one kind of piece.

    initial: that kind. entries (W,): the ids of those entries, ascending. weights: the head's reduced weights by
    name.
    """

    initial: bool
    entries: np.ndarray
    head: Any
    weights: dict[str, Tensor]

    @staticmethod
    def of(model: Any, entries: np.ndarray, *, initial: bool) -> _Filler:
        head, last = head_of(model), model.get_output_embeddings()
        rows = torch.from_numpy(entries).to(last.weight.device)
        weights = {
            name: weight.detach()[rows]
            for name, weight in head.named_parameters()
            if weight is last.weight or weight is last.bias
        }
        return _Filler(initial, entries, head, weights)

    def logits(self, states: Tensor) -> Tensor:
        """The logits of all entries. (M, D) -> (M, W) float32."""
        found: Tensor = torch.func.functional_call(self.head, self.weights, (states,))
        return found.float()


def _best(logits: Tensor, noise: Tensor | None) -> np.ndarray:
    """The best entry of each row, (M, W) -> (M,); with noise (M, k), the best of the k best plus noise.

    On a CPU numpy's argmax is several times as fast as torch's.
    """
    if noise is not None:
        scores, best = logits.topk(min(noise.shape[1], logits.shape[1]), dim=-1)  # (M, k)
        place = (scores + noise[:, : scores.shape[1]]).argmax(-1, keepdim=True)
        return best.gather(1, place)[:, 0].cpu().numpy()
    if logits.device.type == "cpu":
        return logits.numpy().argmax(1)
    return logits.argmax(-1).cpu().numpy()


def head_of(model: Any) -> Any:
    """The masked-LM head, if the model keeps it where BERT or RoBERTa does; otherwise None."""
    return next((getattr(model, head) for head in HEADS if hasattr(model, head)), None)


def named(name: str, precision: Precision) -> str:
    """The generator's name for reports: the model's name or folder, and its precision."""
    folder = named_path(name)
    return f"masked language model {folder.resolve().name if folder.is_dir() else name} in {precision}"


def model_key(name: str) -> str:
    """The key of a model's fillings, from its files, without loading it. BackboneError if it is not found."""
    return key_of({"filling": FILLING, "model": backbone_fingerprint(resolve_backbone(name))})


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """A tokenizer's vocabulary: WordPiece marks continuations of words (`##`), byte-level BPE beginnings (`Ġ`)."""
    entries, special = tokenizer.get_vocab(), set(tokenizer.all_special_ids)
    byte_level = any(entry.startswith("Ġ") for entry in entries)
    surfaces, initial, fills = [""] * len(entries), np.zeros(len(entries), bool), np.zeros(len(entries), bool)
    for entry, place in entries.items():
        if byte_level:
            initial[place] = entry.startswith("Ġ")
            surface = entry if place in special else tokenizer.convert_tokens_to_string([entry]).strip()
        else:
            initial[place] = not entry.startswith("##")
            surface = entry.removeprefix("##")
        surfaces[place] = surface
        reserved = surface.startswith("[unused") or "\N{REPLACEMENT CHARACTER}" in surface
        symbol = len(surface) == 1 and not surface.isascii()
        fills[place] = bool(surface) and place not in special and not reserved and not symbol
    return Vocabulary(tuple(surfaces), initial, fills, byte_level)


def _unfit(name: str, folder: Path, says: str) -> BackboneError:
    return BackboneError(
        f"generator: {name!r} at {folder} {says}\n"
        "  accepted: a masked language model like bert-base-uncased, or cloze"
    )
