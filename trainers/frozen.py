"""A frozen encoder and the table of what it said: every sentence is encoded once and never again.

The encoder is called only through `encode`, so it may as well be remote. Which sentences share a batch changes
values by about 1e-7: the stored table is the truth that every arm and seed reads.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from corpora.cache import digest_of, entry, key_of
from corpora.errors import CorpusError

FORMAT = 1  # raised whenever the same key fields would give another table
DEFINING = (".safetensors", ".json", ".txt", ".model")  # weights, configuration, vocabularies
BATCH = 32


class Encoder(Protocol):
    """What can be frozen. identity holds all that changes its vectors, in plain JSON types."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Unit vectors, (n, d) float32."""
        ...


@dataclass(frozen=True)
class SentenceEncoder:
    """A SentenceTransformer folder, called through its own encode: its pooling, its prompts, its limit.

    prompt: text put before every sentence; None is the folder's default. max_length: tokens kept; None is its own
    limit. The model is loaded at the first call: a table that is already stored needs no model.
    """

    folder: Path
    prompt: str | None = None
    max_length: int | None = None
    device: str = "cpu"

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Digests of the folder's files beside prompt and limit. CorpusError for a folder without safetensors."""
        files = sorted(path for path in self.folder.rglob("*") if path.suffix in DEFINING)
        if not any(path.suffix == ".safetensors" for path in files):
            raise CorpusError(
                f"{self.folder} holds no .safetensors weights; accepted: a SentenceTransformer folder"
            )
        digests = {str(path.relative_to(self.folder)): digest_of(path) for path in files}
        return {"files": digests, "prompt": self.prompt, "max_length": self.max_length}

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        return self._model.encode(
            list(sentences),
            batch_size=BATCH,  # it sorts by length itself and returns the given order
            prompt=self.prompt,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=sys.stderr.isatty(),  # thousands of sentences take minutes
        ).astype(np.float32)

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        with quiet():
            model = SentenceTransformer(
                str(self.folder),
                device=self.device,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": "float32"},
            ).eval()
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        return model


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no remarks on weights that only pre-training used."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vectors of a sentence table, (n, d) float32, and the key they are stored under."""

    x: np.ndarray
    key: str


def embed(
    encoder: Encoder, sentences: Sequence[str], tell: Callable[[str], None] = lambda words: None
) -> Embedded:
    """Vectors of these sentences in their order, from the store or, once, from the encoder.

    tell: hears, in words, of the encoding before it starts.
    ValueError when the encoder returns another shape, or rows that are not finite or not of unit length.
    """
    fields = {**table_fields(sentences), "encoder": dict(encoder.identity), "normalised": True, "dtype": "float32"}
    key = key_of(fields)

    def build(folder: Path) -> None:
        from safetensors.numpy import save_file

        tell(f"embedding {len(sentences):,} sentences")
        start = time.perf_counter()
        x = _checked(encoder.encode(sentences), len(sentences))
        save_file({"x": np.ascontiguousarray(x)}, folder / "emb.safetensors")
        _write_sentences(folder / "sentences.arrow", sentences)
        meta = {**fields, "shape": x.shape, "encode_seconds": round(time.perf_counter() - start, 3)}
        meta["versions"] = {
            name: version(name) for name in ("numpy", "sentence-transformers", "torch", "transformers")
        }
        (folder / "meta.json").write_text(json.dumps(meta, indent=1))

    place, _ = entry("embeddings", key, build)
    from safetensors.numpy import load_file

    return Embedded(_checked(load_file(place / "emb.safetensors")["x"], len(sentences)), key)


def table_fields(sentences: Sequence[str]) -> dict[str, Any]:
    """What identifies a sentence table: its exact bytes in order, and the format it is stored in."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(f"{len(sentence.encode())}:".encode() + sentence.encode())
    return {"sentences": digest.hexdigest(), "format": FORMAT}


def _checked(x: np.ndarray, n: int) -> np.ndarray:
    if x.ndim != 2 or len(x) != n or x.dtype != np.float32:
        raise ValueError(f"the encoder gave {x.dtype} {x.shape} for {n} sentences; expected float32 ({n}, d)")
    norms = np.linalg.norm(x, axis=1)
    if not np.allclose(norms, 1.0, atol=1e-3):  # also false for nan
        worst = int(np.argmax(np.abs(np.nan_to_num(norms, nan=np.inf) - 1)))
        raise ValueError(f"the encoder's vector of sentence {worst} has length {norms[worst]:g}; expected 1")
    return x


def _write_sentences(path: Path, sentences: Sequence[str]) -> None:
    import pyarrow as pa
    from pyarrow import feather

    table = pa.table({"row": pa.array(range(len(sentences)), pa.int32()), "text": pa.array(list(sentences))})
    feather.write_feather(table, str(path))
