"""The encoders that san runs save: each reads texts as its host does after training.

Unsupervised hosts drop the head, the supervised host keeps it, and prompted hosts put a text into SNCSE's first
template.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.store.telling import counted
from trainers.encoders.backbones import listed_modules
from trainers.encoders.encoder import Encoder
from trainers.encoders.encoder_folder import write_json
from trainers.encoders.packing import padded_kind
from trainers.encoders.weightless import without_weights
from trainers.san.dropout import check_sites, drops, set_rate
from trainers.san.settings import PROMPTED, Settings
from trainers.san.templates import VIEW, in_template, mask_token

if TYPE_CHECKING:
    from torch import nn

    from trainers.engine.world import World

CHUNK = 1024  # texts in memory at a time
RECORD = "semray_template.json"  # what `Prompted.save` adds
TRANSFORMER = "transformer"


def opened(settings: Settings, folder: Path, world: World) -> Reader:
    """Open a backbone as the host reads it before training, or a model that this family saved."""
    if (folder / RECORD).is_file():
        folder = folder / TRANSFORMER
    encoder = encoder_of(settings, folder, world).to(world.device)
    headed = settings.host == "simcse_sup" and settings.train
    return reader_of(settings, encoder, saved_head(folder, encoder) if headed else None)


def encoder_of(settings: Settings, folder: Path, world: World) -> Encoder:
    """A backbone with the host's readout and, for training, its dropout rates. ValueError if it has no dropout.

    Its maximum length is that of evaluation; a training batch cuts its texts at train.max_length.
    """
    prompted = settings.host in PROMPTED
    encoder = Encoder.load(
        folder,
        readout="mean" if prompted else settings.readout,  # of a template only the mask token is read
        max_length=settings.reads_at,
        precision=world.precision,
    )
    if settings.layers is not None:
        keep_layers(encoder.backbone, settings.layers)
    if prompted:
        mask_token(encoder.tokenizer)
    check_sites(encoder.backbone, settings.rates)
    if settings.train and settings.p1 is not None:
        set_rate(encoder.backbone, settings.p1)
    return encoder


def keep_layers(body: Any, count: int) -> None:
    """Keep only the first `count` layers. Raises ValueError if the model has fewer, or not one list of layers."""
    from torch import nn

    depth = body.config.num_hidden_layers
    if count > depth:
        raise ValueError(f"train.layers = {count}\n  accepted: up to {depth}, the layers of this backbone")
    stacks = [
        (parent, name)
        for parent in body.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.ModuleList) and len(child) == depth
    ]
    if len(stacks) != 1:  # ALBERT runs one layer repeatedly
        kind = f"{body.config.model_type} has no one stack of {depth} layers"
        raise ValueError(f"train.layers = {count}\n  accepted: null, since {kind}")
    parent, name = stacks[0]
    setattr(parent, name, getattr(parent, name)[:count])
    for field, values in vars(body.config).items():
        if "layer" in field and isinstance(values, list | tuple) and len(values) == depth:  # such as layer_types
            setattr(body.config, field, values[:count])
    body.config.num_hidden_layers = count


def check_layers(folder: Path, count: int) -> None:
    """ValueError when a backbone cannot be left with its first layers alone; its weights are not read."""
    keep_layers(without_weights(folder), count)


def check_dropout(folder: Path, settings: Settings) -> None:
    """ValueError when a backbone has no dropout that a rate could be of, or none to tell two views apart.

    What runs packed has some that a rate could be of.
    """
    if settings.rates and padded_kind(folder) is not None:
        check_sites(without_weights(folder), settings.rates)
    if settings.own_dropout_alone and not drops(without_weights(folder)):
        raise ValueError(
            "train.p1 = None\n  accepted: a rate such as 0.1, or a backbone that has one of its own: without"
            " dropout the two views of a sentence are equal"
        )


def reader_of(settings: Settings, encoder: Encoder, head: nn.Linear | None) -> Reader:
    """How texts are encoded after training; head: that of training, None where there was none."""
    if settings.host in PROMPTED:
        return Prompted(encoder)
    if settings.host == "simcse_sup" and head is not None:
        return Headed(encoder, head)
    return encoder


@dataclass(frozen=True, eq=False)
class _Around(ABC):
    """An encoder that is read in another way than its own."""

    encoder: Encoder

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[str]], np.ndarray]]:
        """What it can be scored on: texts."""
        unscaled = {} if self.encoder.normalises else {"unscaled": self.encode_unscaled}
        return {"texts": self.encode, **unscaled}

    @property
    def truncated(self) -> int:
        """How many texts had to be cut so far."""
        return self.encoder.truncated

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, without dropout. N texts -> (N, D) float32."""
        rows = self.encode_unscaled(texts)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    @abstractmethod
    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors as they are read, without dropout. N texts -> (N, D) float32."""


@dataclass(frozen=True, eq=False)
class Prompted(_Around):
    """Texts in SNCSE's first template, read at its mask."""

    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        rows, count = [], counted("reading texts at their mask", len(texts), self.encoder.tell)
        for begin in range(0, len(texts), CHUNK):
            rows.append(self._rows(texts[begin : begin + CHUNK]))
            count(len(rows[-1]))
        return np.concatenate(rows) if rows else np.zeros((0, self.encoder.width), np.float32)

    def save(self, path: Path) -> None:
        """Write a folder that `opened` reads.

        No module of sentence-transformers reads a mask: the transformer lies in a folder of its own, so that
        SentenceTransformer(path) fails and does not average all tokens of a bare text.
        """
        self.encoder.save(path / TRANSFORMER)
        write_json(path / RECORD, {"template": list(VIEW), "readout": "mask"})

    @staticmethod
    def load(path: Path) -> Prompted:
        """What `save` wrote."""
        return Prompted(Encoder.load(path / TRANSFORMER))

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        encoder = self.encoder
        tokens = in_template(encoder.tokenizer, texts, VIEW, max_length=encoder.max_length)
        encoder.truncated += tokens.truncated
        return encoder.embed(tokens)


@dataclass(frozen=True, eq=False)
class Headed(_Around):
    """An encoder and the head it was trained with: tanh(W h + b)."""

    head: nn.Linear

    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        if not len(texts):
            return np.zeros((0, self.encoder.width), np.float32)
        states = self.encoder.embed(self.encoder.tokenise(texts))
        weight, bias = (value.detach().float().cpu().numpy() for value in (self.head.weight, self.head.bias))
        return np.tanh(states @ weight.T + bias)

    def save(self, path: Path) -> None:
        """Write a folder that SentenceTransformer(path) reads, the head as its Dense module."""
        from safetensors.torch import save_file

        self.encoder.save(path)
        *modules, last = listed_modules(path)  # rows of length 1 come after the head
        dense = path / f"{len(modules)}_Dense"
        (path / last["path"]).rmdir()
        for n, name in enumerate(("Dense", "Normalize"), start=len(modules)):
            (path / f"{n}_{name}").mkdir()
            own = {
                "idx": n,
                "name": str(n),
                "path": f"{n}_{name}",
                "type": last["type"].replace("Normalize", name),
            }
            modules.append({**last, **own})
        width = self.head.out_features
        config = {
            "in_features": width, "out_features": width, "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh",
        }  # fmt: skip
        write_json(dense / "config.json", config)
        weights = {
            f"linear.{name}": value.detach().cpu().contiguous() for name, value in self.head.named_parameters()
        }
        save_file(weights, dense / "model.safetensors")
        write_json(path / "modules.json", modules)


def saved_head(folder: Path, encoder: Encoder) -> nn.Linear | None:
    """The head that `Headed.save` wrote; None in a folder without one."""
    from safetensors.torch import load_file
    from torch import nn

    found = list(folder.glob("*_Dense/model.safetensors"))
    if len(found) != 1:
        return None
    head = nn.Linear(encoder.width, encoder.width).to(encoder.device)
    head.load_state_dict({name.removeprefix("linear."): value for name, value in load_file(found[0]).items()})
    return head


Reader = Encoder | Prompted | Headed
