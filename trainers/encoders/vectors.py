"""A cache of encoders' vectors on disk: the same weights and tokens are encoded only once.

    store = Vectors.of(encoder)
    names = keys(tokens)
    known, rows = store.look_up(names)              # (N,) bool, (N, D)
    store.keep(names[~known], fresh)

Keys are hashes of content: of weights, readout, precision and versions for the encoder, of token ids for a text. A
model that was trained again thus has other keys, whatever its run is called. The files are in the folder `vectors`
of the cache; the least recently used ones are removed when they exceed $SEMRAY_VECTORS_GB (2 by default; 0 turns
the cache off).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.store.cache import cache_folder
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.encoders.encoder import Encoder
    from trainers.encoders.tokens import Tokens

FORMAT = 3  # raised whenever the same weights would give the same tokens other vectors
VARIABLE, GIGABYTES = "SEMRAY_VECTORS_GB", 2.0
KEY = np.dtype("V16")
log = logging.getLogger(__name__)


def limit() -> int:
    """The cache's size limit in bytes. Raises TrainerError if the variable holds no number of gigabytes."""
    written = os.environ.get(VARIABLE, str(GIGABYTES))
    try:
        gigabytes = float(written)
    except ValueError:
        gigabytes = math.nan
    if not 0 <= gigabytes < math.inf:
        raise TrainerError(f"${VARIABLE} = {written!r}\n  accepted: a number of gigabytes; 0 keeps nothing")
    return int(gigabytes * 2**30)


@dataclass(frozen=True)
class Vectors:
    """The cached vectors of one encoder, in files that are each named by the sha256 of their content."""

    folder: Path

    @staticmethod
    def of(encoder: Encoder) -> Vectors:
        return Vectors(cache_folder() / "vectors" / identity(encoder))

    def look_up(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return which of these `keys` are cached, (N,) bool, and rows (N, D) float32 that hold their vectors.

        Rows of unknown keys are 0; None instead of rows if no key is known.
        """
        known, rows = np.zeros(len(names), bool), None
        for file in sorted(self.folder.glob("*.safetensors")):
            if known.all():
                break
            held = _read(file)
            if held is None:
                continue
            order = np.argsort(held["keys"])
            place = np.searchsorted(held["keys"], names, sorter=order).clip(max=len(order) - 1)
            found = ~known & (held["keys"][order[place]] == names)
            if found.any():
                rows = np.zeros((len(names), held["rows"].shape[1]), np.float32) if rows is None else rows
                rows[found] = held["rows"][order[place[found]]]
                known |= found
                with suppress(OSError):
                    os.utime(file)  # marks it as most recently used
        return known, rows

    def keep(self, names: np.ndarray, rows: np.ndarray) -> None:
        """Add rows (N, D) float32 under these distinct `keys`; remove old files if the cache exceeds its limit.

        A disk that cannot be written is only logged: the caller has the vectors already.
        """
        from safetensors.numpy import save

        room = limit()
        content = save({"keys": names.view(np.uint8).reshape(-1, 16), "rows": rows})
        if len(content) > room:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self.folder / f"{hashlib.sha256(content).hexdigest()}.safetensors", content)
            _make_room(self.folder.parent, room)
        except OSError as error:
            _warn(self.folder.parent, error.strerror or str(error))


def identity(encoder: Encoder) -> str:
    """sha256 of all that decides an encoder's vectors of given tokens. About 0.2 s for the 90 MB of MiniLM."""
    digest = hashlib.sha256()
    for name, tensor in encoder.state_dict().items():
        flat = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {flat.dtype} {tuple(flat.shape)}\n".encode())
        digest.update(flat.numpy().data)
    config = encoder.backbone.config.to_dict()
    deciding = {
        "format": FORMAT,
        "config": {name: value for name, value in config.items() if name != "_name_or_path"},
        "attention": encoder.backbone.config._attn_implementation,
        "readout": [encoder.readout, encoder.layers, encoder.precision, encoder.device.type],
        "versions": {name: version(name) for name in ("torch", "transformers")},
    }
    digest.update(json.dumps(deciding, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def keys(tokens: Tokens) -> np.ndarray:
    """The key of each text: a hash of its token ids and of which of them are read. -> (N,) of 16 bytes."""
    ends = np.cumsum(tokens.lengths).tolist()
    named = b"".join(
        hashlib.blake2b(
            tokens.ids[begin:end].tobytes() + (b"" if tokens.read is None else tokens.read[begin:end].tobytes()),
            digest_size=KEY.itemsize,
        ).digest()
        for begin, end in zip([0, *ends[:-1]], ends, strict=True)
    )
    return np.frombuffer(named, KEY)


def _read(file: Path) -> Mapping[str, np.ndarray] | None:
    """Keys and rows of a file; None if it is unreadable, or if its content does not match its name: remove it."""
    from safetensors.numpy import load

    try:
        content = file.read_bytes()
    except OSError:
        return None  # another process removed it, or it belongs to another user
    if hashlib.sha256(content).hexdigest() != file.stem:
        log.warning("vectors: %s is not what was written; removed", file)
        with suppress(OSError):
            file.unlink()
        return None
    held = load(content)
    return {"keys": held["keys"].reshape(-1).view(KEY), "rows": held["rows"]}


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically."""
    draft = file.with_name(f"{secrets.token_hex(8)}.draft")  # not mkstemp, whose files only their owner can read
    try:
        draft.write_bytes(content)
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


@cache  # warns once a process
def _warn(shelf: Path, why: str) -> None:
    log.warning("vectors: %s cannot be written: %s; nothing is kept", shelf, why)


def _make_room(shelf: Path, room: int) -> None:
    """Remove least recently used files, and drafts of killed processes, until the rest fits in `room` bytes."""
    found = []
    for file in (*shelf.glob("*/*.safetensors"), *shelf.glob("*/*.draft")):
        with suppress(FileNotFoundError):
            state = file.stat()
            found.append((state.st_mtime_ns, state.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= room:
            return
        file.unlink(missing_ok=True)
        total -= size
