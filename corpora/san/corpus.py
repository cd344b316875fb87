"""The san family's corpus: its fingerprint, and loading it from the cache.

    corpus = load(SanData(sentences="wordnet", sample=4800, most_words=24))
    corpus.negatives("san", rule="semray").take([0])

Sets of the count-based generator are made here, once, in seconds to minutes. Those of a masked language model are
made before, by `semray san-generate`, and are given by their folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa

from corpora.san.build import Names, cloze, cloze_manifest, names_of, selected
from corpora.san.data import SanData
from corpora.san.generate import rows
from corpora.san.lexicon_sources import Lexicon, lexicon, rewriter
from corpora.san.recipe import SetRecipe
from corpora.san.records import SanCorpus
from corpora.san.shards import SHARD, read, read_manifest, set_id
from corpora.san.tables import SetFile, read_sentences, read_set, write_sentences, write_set
from corpora.store.cache import entry, key_of
from corpora.store.columns import Texts
from corpora.store.errors import CorpusError
from corpora.store.places import named_path
from corpora.store.telling import aloud, counted


def fingerprint(data: SanData) -> str:
    """sha256 of the sources' content and the settings. Reads the sources and builds nothing."""
    return _fingerprint(data, names_of(data))


def load(data: SanData) -> SanCorpus:
    """The corpus from the cache, built if missing. CorpusError for a bad source."""
    names = names_of(data)
    place, _ = entry("san-sentences", names.selection, lambda folder: write_sentences(folder, selected(data)))
    sentences = read_sentences(place)
    found = cache(lambda: lexicon(data.lexicon, wordnet_at=data.wordnet, semcor_at=data.semcor))
    sets = {
        name: _made(name, names, given, sentences.texts, found)
        if isinstance(given, SetRecipe)
        else _given(name, named_path(given), names.selection)
        for name, given in data.negatives.items()
    }
    negators = {one.negator for one in sets.values()}
    if len(negators) > 1:
        raise CorpusError(
            f"corpora: data.negatives: sets were negated differently: {'; '.join(sorted(negators))}\n"
            "  accepted: sets of one negator, so that arms differ in their aligned negatives alone"
        )
    first = next(iter(sets.values()))
    return SanCorpus(
        sentences=sentences.texts,
        soft=first.soft,
        negator=first.negator,
        sets={name: one.aligned for name, one in sets.items()},
        entailed=sentences.entailed,
        contradicted=sentences.contradicted,
        fingerprint=_fingerprint(data, names),
    )


def _fingerprint(data: SanData, names: Names) -> str:
    sets = {
        name: set_id(
            cloze_manifest(names, given) if isinstance(given, SetRecipe) else read_manifest(named_path(given))
        )
        for name, given in data.negatives.items()
    }
    return key_of({"sentences": names.selection, "sets": sets})


def _made(name: str, names: Names, recipe: SetRecipe, texts: Texts, found: Callable[[], Lexicon]) -> SetFile:
    """The set of a recipe by counts, from the cache or made now. found: gives the lexicon if it is needed."""
    manifest = cloze_manifest(names, recipe)

    def build(folder: Path) -> None:
        using = rewriter(cloze(names.cloze, texts, found()), recipe, found())
        count = counted(f"making the negatives {name!r}", len(texts), aloud)

        def table(first: int) -> pa.Table:
            part = rows(using, texts[first : first + SHARD], first)
            count(len(part))
            return part

        write_set(folder, manifest, map(table, range(0, len(texts), SHARD)))

    return read_set(entry("san-set", set_id(manifest), build)[0])


def _given(name: str, folder: Path, selection: str) -> SetFile:
    """The set of a folder, memory-mapped from the cache. CorpusError if it has other sentences."""
    manifest = read_manifest(folder)
    if manifest["corpus"] != selection:
        raise CorpusError(
            f"corpora: data.negatives: {name}: {folder} was made from other sentences than `data:` selects\n"
            "  accepted: a set made with the same sentences, lengths and sample"
        )
    return read_set(entry("san-set", set_id(manifest), lambda draft: write_set(draft, manifest, read(folder)))[0])
