"""What a frozen teacher says of every sentence of a corpus: encoded once, kept under what it was made from.

One pass serves all epochs, arms, trials and seeds. A million sentences at width 768 are 1.5 GB, mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corpora.store.cache import entry, key_of
from corpora.store.telling import Tell, counted
from trainers.encoders.backbones import backbone_fingerprint, resolve_backbone
from trainers.encoders.embeddings import digest_of_texts
from trainers.encoders.encoder import Encoder
from trainers.san.templates import VIEW, Template, in_template

if TYPE_CHECKING:
    from trainers.encoders.readout_names import Readout
    from trainers.san.columns import Column

FORMAT = 1  # raised whenever the same fields of a key would give other vectors
PORTION = 1024  # texts in memory at a time
READOUTS: Mapping[str, Readout] = MappingProxyType({"cls": "cls", "mean": "mean", "mask": "mean", "idf": "mean"})


class Teacher(NamedTuple):
    """A backbone and how it is read: its first token, the mean, the mask of SNCSE's template, or idf.

    idf: the mean of its input embeddings, each token weighted by the logarithm of how many times more sentences
    there are than sentences that hold it. It knows no context, and so no template.
    """

    backbone: str
    readout: str

    @staticmethod
    def of(name: str) -> Teacher:
        """From BACKBONE@READOUT."""
        backbone, _, readout = name.rpartition("@")
        return Teacher(backbone, readout)

    def template(self, wanted: Template | None) -> Template | None:
        """What its texts stand in where the student's stand in `wanted`."""
        if self.readout == "idf":
            return None
        return VIEW if self.readout == "mask" and wanted is None else wanted


def vectors(
    teacher: Teacher,
    column: Column,
    sentences: Column,
    template: Template | None,
    *,
    max_length: int,
    device: str,
    tell: Tell,
) -> np.ndarray:
    """Unit vectors of a column, row by row; encoded in float32 unless they are kept. -> (N, D) float16, mapped.

    sentences: where idf counts. tell: hears, in words, how far the encoding is. BackboneError when the
    teacher is nowhere to be found.
    """
    folder, template = resolve_backbone(teacher.backbone), teacher.template(template)
    content: dict[str, Any] = {
        "format": FORMAT,
        "backbone": backbone_fingerprint(folder),
        "readout": teacher.readout,
        "template": template,
        "max_length": max_length,
        "texts": _digest(column),
        "counted": _digest(sentences) if teacher.readout == "idf" else None,
    }

    def build(place: Path) -> None:
        reading = f"{teacher.backbone} ({teacher.readout}) reads sentences"
        tell(f"{reading}, {len(column):,} of them")
        encoder = Encoder.load(folder, readout=READOUTS[teacher.readout], max_length=max_length).to(device)
        weights = _idf(encoder, sentences) if teacher.readout == "idf" else None
        table = np.lib.format.open_memmap(
            place / "vectors.npy", mode="w+", dtype=np.float16, shape=(len(column), encoder.width)
        )
        begin, count = 0, counted(reading, len(column), tell)
        for texts in _portions(column):
            if weights is None:
                rows = _read(encoder, texts, template, masked=teacher.readout == "mask")
            else:
                rows = _weighed(encoder, texts, weights)
            table[begin : begin + len(texts)] = rows / np.maximum(
                np.linalg.norm(rows, axis=1, keepdims=True), 1e-9
            )
            begin += len(texts)
            count(len(texts))
        table.flush()

    place, _ = entry("teachers", key_of(content), build, tell)
    return np.load(place / "vectors.npy", mmap_mode="r", allow_pickle=False)


def _read(encoder: Encoder, texts: Sequence[str], template: Template | None, *, masked: bool) -> np.ndarray:
    if template is None:
        return encoder.embed(encoder.tokenise(texts))
    tokens = in_template(encoder.tokenizer, texts, template, max_length=encoder.max_length)
    return encoder.embed(tokens if masked else replace(tokens, read=None))


def _weighed(encoder: Encoder, texts: Sequence[str], weights: np.ndarray) -> np.ndarray:
    """Sums of input embeddings, weighted by token. -> (n, D)."""
    tokens = encoder.tokenise(texts)
    table = encoder.backbone.get_input_embeddings().weight.detach().cpu().numpy()
    return np.add.reduceat(table[tokens.ids] * weights[tokens.ids, None], tokens.starts)


def _idf(encoder: Encoder, sentences: Column) -> np.ndarray:
    """log(N / sentences with it) of every token; one that stands in none counts as if in one. -> (V,) float32."""
    held = np.zeros(encoder.backbone.get_input_embeddings().num_embeddings, np.int64)
    for texts in _portions(sentences):
        for ids in encoder.tokenise(texts).each():
            held[np.unique(ids)] += 1
    return np.log(len(sentences) / np.maximum(held, 1)).astype(np.float32)


def _portions(column: Column) -> Iterator[list[str]]:
    for begin in range(0, len(column), PORTION):
        yield column.take(np.arange(begin, min(begin + PORTION, len(column))))


def _digest(column: Column) -> str:
    return digest_of_texts(text for texts in _portions(column) for text in texts)
