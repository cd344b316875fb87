"""Converts a backbone with pickled weights to a folder of safetensors, on request: `semray convert`.

Opening a pickle can run any code. Here torch opens it with weights_only, which refuses all but tensors and their
containers. The only other pickles that semray opens are checkpoints that a run wrote itself.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.store.durable import as_readable_as
from corpora.store.errors import first_line
from trainers.encoders.backbones import (
    CONFIGURATION,
    MODULE,
    SENTENCE_TRANSFORMERS,
    BackboneError,
    backbone_fingerprint,
    folder_of,
    modules_in,
    repositories,
    unusable,
)

if TYPE_CHECKING:
    from torch import Tensor

PICKLED = "pytorch_model.bin"
SAFE = "model.safetensors"
SHARDS = "pytorch_model-*.bin"
INDEX = "pytorch_model.bin.index.json"
ABOUT = ("README.md", "LICENSE*", "LICENCE*")  # copied along, as they name the weights' authors


def convert(name: str, out: Path) -> str:
    """Write a backbone, given as a folder or by its hub name, with safetensors to `out`; return its fingerprint.

    out must not exist; it is written atomically. Raises BackboneError if the backbone cannot be converted.
    """
    if out.exists():
        raise BackboneError(f"convert: {out} exists\n  accepted: a folder that is not there yet")
    source = _source(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    # not mkdtemp, whose folders only their owner reads
    draft = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
    draft.mkdir()
    try:
        _copied(source, draft, (*CONFIGURATION, *SENTENCE_TRANSFORMERS, *ABOUT))
        _weights(source, draft)
        for _, module in modules_in(source):
            place = draft / module.relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            _copied(module, place, MODULE)
            if (module / PICKLED).is_file() and not (module / SAFE).is_file():
                _save(_opened(module / PICKLED), place / SAFE)
        if (missing := unusable(draft)) is not None:
            raise BackboneError(f"convert: {source} {missing}\n  accepted: a whole folder of a model")
        as_readable_as(draft)
        os.replace(draft, out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return backbone_fingerprint(out)


def _source(name: str) -> Path:
    """The folder with the pickled weights: a path, under $SEMRAY_BACKBONES, or fetched from the hub."""
    return _with_pickles(folder_of(name) or _fetched(name))


def _with_pickles(folder: Path) -> Path:
    if (folder / SAFE).is_file() or list(folder.glob("model-*.safetensors")):
        raise BackboneError(f"convert: {folder} has safetensors\n  accepted: a model with pickled weights alone")
    if not (folder / PICKLED).is_file() and not (folder / INDEX).is_file():
        raise BackboneError(f"convert: {folder} has no {PICKLED}\n  accepted: a folder as the hub keeps it")
    return folder


def _fetched(name: str) -> Path:
    import httpx
    from huggingface_hub import snapshot_download

    wanted = [*CONFIGURATION, *SENTENCE_TRANSFORMERS, *ABOUT, PICKLED, SHARDS, INDEX, "model*.safetensors"]
    wanted += [f"*/{name}" for name in (*MODULE, PICKLED)]
    failures = []
    for repository in repositories(name):
        try:
            return Path(snapshot_download(repository, allow_patterns=wanted))
        except (OSError, ValueError, httpx.HTTPError) as error:
            failures.append(f"  hub: {repository}: {first_line(error)}")
    listed = "\n".join(failures)
    raise BackboneError(
        f"convert: {name}: no such folder, nor on the hub\n{listed}\n  accepted: a folder, or owner/name"
    )


def _copied(source: Path, place: Path, patterns: tuple[str, ...]) -> None:
    for file in sorted({file for pattern in patterns for file in source.glob(pattern)}):
        shutil.copyfile(file, place / file.name)  # the hub's cache holds links


def _weights(source: Path, place: Path) -> None:
    """Convert one file of weights, or all shards with their index."""
    if not (source / INDEX).is_file():
        _save(_opened(source / PICKLED), place / SAFE)
        return
    index = json.loads((source / INDEX).read_text())
    named = {shard: _renamed(shard) for shard in sorted(set(index["weight_map"].values()))}
    for shard, file in named.items():
        _save(_opened(source / shard), place / file)
    index["weight_map"] = {tensor: named[shard] for tensor, shard in index["weight_map"].items()}
    (place / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


def _renamed(shard: str) -> str:
    if Path(shard).name != shard:
        raise BackboneError(f"convert: {INDEX} names {shard!r}\n  accepted: files of the same folder")
    return shard.removeprefix("pytorch_").removesuffix(".bin") + ".safetensors"


def _opened(file: Path) -> dict[str, Tensor]:
    """The tensors of a pickle, by name. Raises BackboneError, and runs nothing, if it holds anything else."""
    import torch

    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        said = str(error).split("WeightsUnpickler error:")[-1].strip().splitlines()
        raise BackboneError(
            f"convert: {file} holds more than weights and was not opened ({said[0] if said else 'unreadable'})"
            "\n  accepted: a file of tensors alone; one with code in it may do anything, look who made it"
        ) from None
    except (OSError, RuntimeError, EOFError) as error:
        raise BackboneError(f"convert: {file} cannot be read ({error})\n  accepted: one of torch.save") from None
    if not isinstance(held, dict) or not all(isinstance(one, torch.Tensor) for one in held.values()):
        raise BackboneError(f"convert: {file} holds no plain table of tensors\n  accepted: name -> tensor")
    return held


def _save(tensors: dict[str, Tensor], file: Path) -> None:
    from safetensors.torch import save_file

    alone = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}  # none shares memory
    save_file(alone, file, metadata={"format": "pt"})
