"""Making a set of aligned negatives in a folder: begun here, written shard by shard wherever a worker runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from corpora.san import shards
from corpora.san.build import Names, cloze, cloze_manifest, manifest_of, names_of, selected
from corpora.san.data import SanData
from corpora.san.generate import rows
from corpora.san.lexicon_sources import Lexicon, lexicon, rewriter
from corpora.san.mask_predict import Generator
from corpora.san.recipe import SetRecipe
from corpora.store.errors import CorpusError
from corpora.store.telling import HowFar
from orchestration.families.contract import Write
from trainers.engine.world import Precision

CLOZE = "cloze"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be made. data: its sentences and lexicon; its sets do not matter. generator: CLOZE, or a masked
    language model by hub name or folder. folder: where the set is kept. device: of the model, "cpu" or "cuda".
    precision: of its arithmetic.
    """

    data: SanData
    recipe: SetRecipe
    generator: str
    folder: Path
    device: str = "cpu"
    precision: Precision = "fp32"


def begin(order: Order) -> dict[int, int]:
    """Make the folder, or find it as it was left; what is costly to count is counted. Returns the sentences of
    every pending shard.

    CorpusError when the folder holds another set, or a source or the model is at fault.
    """
    names = names_of(order.data)
    shards.begin(order.folder, _manifest(order, names), selected(order.data).texts)
    pending = shards.pending(order.folder)
    if pending:
        _generator(order, names, _lexicon(order.data))
    manifest = shards.read_manifest(order.folder)
    return {shard: shards.rows_in(manifest, shard) for shard in pending}


def writer_of(order: Order) -> Callable[[], Write]:
    """Make the function that writes a shard by its number, in the process that calls this."""
    return partial(_open_writer, order)


def _open_writer(order: Order) -> Write:
    names, found = names_of(order.data), _lexicon(order.data)
    using = rewriter(_generator(order, names, found), order.recipe, found)

    def write(shard: int, how_far: HowFar) -> None:
        texts = shards.sentences_of(order.folder, shard)
        shards.write_shard(order.folder, shard, rows(using, texts, shard * shards.SHARD, how_far))

    return write


def _manifest(order: Order, names: Names) -> dict[str, Any]:
    if order.generator == CLOZE:
        return cloze_manifest(names, order.recipe)
    from trainers.san.masked_model import model_key, named

    with _model_errors_as_sources():
        key = model_key(order.generator)
    return manifest_of(names, order.recipe, generator=named(order.generator, order.precision), key=key)


def _generator(order: Order, names: Names, found: Lexicon) -> Generator:
    if order.generator == CLOZE:
        return cloze(names.cloze, shards.every_sentence(order.folder), found)
    from trainers.san.masked_model import MaskedModel

    with _model_errors_as_sources():
        return MaskedModel.load(order.generator, found.resolve, device=order.device, precision=order.precision)


@contextmanager
def _model_errors_as_sources() -> Iterator[None]:
    """Turn errors of the model into those of a set's other sources."""
    from trainers.encoders.backbones import BackboneError

    try:
        yield
    except BackboneError as error:
        raise CorpusError(str(error)) from error


def _lexicon(data: SanData) -> Lexicon:
    return lexicon(data.lexicon, wordnet_at=data.wordnet, semcor_at=data.semcor)
