"""A frozen encoder: it is called only through `encode`, so it may as well be remote."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from corpora.store.cache import digest_of
from corpora.store.errors import CorpusError
from corpora.store.telling import Tell, unheard
from trainers.encoders.passes_told import passes_told
from trainers.encoders.quiet import quiet
from trainers.encoders.tokens import texts_cut, within_positions

DEFINING = (".safetensors", ".json", ".txt", ".model")  # weights, configuration, vocabularies
BATCH = 32
PORTION = 128 * BATCH  # sentences whose token states are held at once
KEPT_BYTES = 1 << 30  # of token states that are remembered; further sentences are encoded again


def weights_digests(folder: Path, accepted: str) -> dict[str, str]:
    """SHA-256 of each defining file of a model's folder, by its path in the folder.

    Raises CorpusError, with `accepted` in its message, if the folder holds no safetensors.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in DEFINING)
    if not any(path.suffix == ".safetensors" for path in files):
        raise CorpusError(f"{folder} holds no .safetensors weights\n  accepted: {accepted}")
    return {str(path.relative_to(folder)): digest_of(path) for path in files}


class FrozenEncoder(Protocol):
    """An encoder without training. identity holds all that decides its vectors, in plain JSON types."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Unit vectors, (n, d) float32."""
        ...


@dataclass(frozen=True, eq=False)
class Words:
    """The tokens of one sentence without special ones: ids (T,), last-layer states (T, D)."""

    ids: Tensor
    states: Tensor


@dataclass
class _Memory:
    """Remembers the tokens of sentences. room: bytes of token states that still fit."""

    room: int
    words: dict[str, Words] = field(default_factory=dict)

    def keep(self, sentence: str, words: Words) -> None:
        if (left := self.room - words.states.nbytes) >= 0:
            self.words[sentence], self.room = words, left

    def forget(self) -> None:
        self.room += sum(words.states.nbytes for words in self.words.values())
        self.words.clear()


@dataclass(frozen=True)
class SentenceEncoder:
    """A SentenceTransformer folder, called through that library's encode, with its pooling, prompts and limit.

    prompt: text put before every sentence; None for the folder's default. max_length: tokens per sentence, at most
    as many as the model has positions; None for its own limit. keep_words: `encode` remembers the sentences'
    tokens for `words`, until its next call. tell: hears, in words, how far reading is. The model is loaded at the
    first call: a stored table needs no model.
    """

    folder: Path
    prompt: str | None = None
    max_length: int | None = None
    device: str = "cpu"
    keep_words: bool = False
    tell: Tell = field(default=unheard, compare=False)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Digests of the folder's files beside prompt and limit. CorpusError for a folder without safetensors."""
        digests = weights_digests(self.folder, "a SentenceTransformer folder")
        return {"files": digests, "prompt": self.prompt, "max_length": self.max_length}

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        if self.keep_words:
            return self._encode_and_keep(sentences)
        return self._encoded(sentences, normalize=True)

    def encode_unscaled(self, sentences: Sequence[str]) -> np.ndarray:
        """Vectors as the folder's own modules give them, not normalised. (n, d) float32."""
        return self._encoded(sentences, normalize=False)

    def _encoded(self, sentences: Sequence[str], *, normalize: bool) -> np.ndarray:
        with passes_told(self._model, len(sentences), self.tell):
            return self._model.encode(
                list(sentences),
                batch_size=BATCH,  # it sorts by length itself and returns the given order
                prompt=self.prompt,
                normalize_embeddings=normalize,
                convert_to_numpy=True,
                show_progress_bar=self.tell is unheard and sys.stderr.isatty(),  # thousands take minutes
            ).astype(np.float32)

    def cut(self, sentences: Sequence[str]) -> int:
        """How many of these sentences are longer than the model's limit."""
        return texts_cut(self._model, sentences, self.prompt)

    def words(self, sentences: Sequence[str]) -> list[Words]:
        """The tokens of every sentence as the encoder reads them, from memory if it remembers them."""
        missing = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._memory.words]
        read = {missing[row]: words for row, _, words in self._read(missing)}
        return [self._memory.words.get(sentence) or read[sentence] for sentence in sentences]

    @property
    def input_vectors(self) -> Tensor:
        """The vector of every token id before any layer. (V, D)."""
        return self._model.transformers_model.get_input_embeddings().weight.detach()

    @cached_property
    def _memory(self) -> _Memory:
        return _Memory(KEPT_BYTES)

    def _encode_and_keep(self, sentences: Sequence[str]) -> np.ndarray:
        self._memory.forget()
        by_row = {row: vector for row, vector, _ in self._read(sentences)}
        vectors = torch.stack([by_row[row] for row in range(len(sentences))]).float()
        return torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()

    def _read(self, sentences: Sequence[str]) -> Iterator[tuple[int, Tensor, Words]]:
        """Row, sentence vector (d,) and tokens of every sentence, long ones first."""
        order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        special = torch.tensor(self._model.tokenizer.all_special_ids, device=self.device)
        with passes_told(self._model, len(order), self.tell):
            for start in range(0, len(order), PORTION):
                rows = order[start : start + PORTION]
                outputs = self._model.encode(
                    [sentences[row] for row in rows],
                    batch_size=BATCH,
                    prompt=self.prompt,
                    output_value=None,  # all outputs, not the sentence vector alone
                    show_progress_bar=False,
                )
                for row, output in zip(rows, outputs, strict=True):
                    real = output["attention_mask"].bool() & ~torch.isin(output["input_ids"], special)
                    words = Words(output["input_ids"][real], output["token_embeddings"][real])
                    self._memory.keep(sentences[row], words)
                    yield row, output["sentence_embedding"], words

    @cached_property
    def _model(self) -> Any:
        from trainers.encoders.gated_pooling import sentence_transformer

        with quiet():
            model = sentence_transformer(
                self.folder,
                device=self.device,
                model_kwargs={"use_safetensors": True, "dtype": "float32"},
            ).eval()
        if self.max_length is not None:
            config = getattr(model.transformers_model, "config", None)
            model.max_seq_length = within_positions(self.max_length, config)
        return model
