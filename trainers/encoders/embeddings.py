"""Stored tables of a frozen encoder's vectors: every sentence is encoded once.

Vectors depend on the batch by about 1e-7, so every arm and seed reads the same stored table.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from corpora.store.cache import entry, key_of
from corpora.store.telling import Tell, unheard
from trainers.encoders.frozen_encoder import FrozenEncoder

FORMAT = 1  # raised whenever the same key fields would give another table


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vectors of a sentence table, (n, d) float32, and the key they are stored under."""

    x: np.ndarray
    key: str


def embed(encoder: FrozenEncoder, sentences: Sequence[str], tell: Tell = unheard) -> Embedded:
    """Vectors of these sentences in their order, from the store; if it lacks them, encode and store them.

    tell: called with a line of progress before encoding starts.
    Raises ValueError if the encoder returns a wrong shape, or rows that are not finite or not of unit length.
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

    place, _ = entry("embeddings", key, build, tell)
    from safetensors.numpy import load_file

    return Embedded(_checked(load_file(place / "emb.safetensors")["x"], len(sentences)), key)


def table_fields(sentences: Sequence[str]) -> dict[str, Any]:
    """The part of a table's key that stands for its sentences: a digest of their bytes, and the file format."""
    return {"sentences": digest_of_texts(sentences), "format": FORMAT}


def digest_of_texts(texts: Iterable[str]) -> str:
    """sha256 of the texts in their order, about a second for a million."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text.encode())}:{text}".encode())
    return digest.hexdigest()


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
