"""Makes the parts of a set of aligned negatives: its sentences, the counts that fill masks, its manifest.

Each part is kept in the cache under a hash of its sources and settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpora.san.cloze import Cloze, count
from corpora.san.data import SanData
from corpora.san.importance import read_scores
from corpora.san.lexicon_sources import Lexicon, lexicon_fingerprint, negator_name
from corpora.san.recipe import SetRecipe
from corpora.san.sentences import Sentences, digest, read, wordnet_texts
from corpora.sources import spacy_model, wordnet_files
from corpora.sources.texts import keyed
from corpora.store.cache import entry, key_of
from corpora.store.errors import CorpusError

# Part of every name: raise it whenever the same sources and settings would give other rows or files.
BUILDER = 1
CLOZE = "the sentences and of WordNet's glosses"


class Names(NamedTuple):
    """Hashes of a set's parts: the sentences, the lexicon that tags them, the counts that fill masks."""

    selection: str
    lexicon: str
    cloze: str


def names_of(data: SanData) -> Names:
    """The hashes for these settings. Reads the sources and builds nothing."""
    selection = selection_key(data)
    wordnet = wordnet_files.locate(data.wordnet).digests()
    tags = lexicon_fingerprint(data.lexicon, wordnet_at=data.wordnet, semcor_at=data.semcor)
    counts = {"builder": BUILDER, "sentences": selection, "wordnet": wordnet, "lexicon": tags}
    return Names(selection, tags, key_of(counts))


def selection_key(data: SanData) -> str:
    """A hash of the chosen sentences, computed without choosing them."""
    found = digest(data.sentences, path=data.path, wordnet_at=data.wordnet, semcor_at=data.semcor)
    chosen = {"least": data.least_words, "most": data.most_words, "sample": data.sample}
    return key_of({"builder": BUILDER, "sentences": found, "chosen": chosen})


def selected(data: SanData) -> Sentences:
    """The sentences of the wanted lengths, in the corpus's order; a sample has those with the smallest hashes."""
    every = read(data.sentences, path=data.path, wordnet_at=data.wordnet, semcor_at=data.semcor)
    lengths = np.array([len(text.split()) for text in every.texts])
    most = lengths.max(initial=0) if data.most_words is None else data.most_words
    rows = np.flatnonzero((lengths >= data.least_words) & (lengths <= most))
    if not len(rows):
        raise CorpusError(
            f"corpora: {data.sentences} has no sentence of data.least_words = {data.least_words} to "
            f"data.most_words = {data.most_words} words\n  accepted: lengths that leave some"
        )
    if data.sample is not None and data.sample < len(rows):
        order = np.array([keyed("sentence", every.texts[row]) for row in rows], np.uint64)
        rows = np.sort(rows[np.argsort(order, kind="stable")[: data.sample]])
    texts, entailed, contradicted = (
        column and [column[row] for row in rows.tolist()]
        for column in (every.texts, every.entailed, every.contradicted)
    )
    return Sentences(texts or [], entailed, contradicted)


def cloze(name: str, texts: Iterable[str], found: Lexicon) -> Cloze:
    """Counts of the sentences and of WordNet's texts, from the cache, or counted if missing."""

    def build(folder: Path) -> None:
        counted = dict.fromkeys([*texts, *wordnet_texts(found.wordnet)])
        Cloze.of(count(counted, source=CLOZE), found.resolve).save(folder)

    return Cloze.load(entry("san-cloze", name, build)[0], found.resolve, CLOZE)


def manifest_of(names: Names, recipe: SetRecipe, *, generator: str, key: str) -> dict[str, Any]:
    """All that can change a row of a set. generator: its name in words; key: a hash of its model."""
    settings = asdict(recipe) | {"importance": read_scores(recipe.importance)}
    return {
        "builder": BUILDER,
        "corpus": names.selection,
        "generator": generator,
        "generator_key": key,
        "lexicon": names.lexicon,
        "negator": negator_name(recipe),
        "tagger": spacy_model.named() if recipe.tagging == "dynamic" else "",
        "recipe": settings,
    }


def cloze_manifest(names: Names, recipe: SetRecipe) -> dict[str, Any]:
    """The manifest of a set whose masks are filled by counts."""
    return manifest_of(names, recipe, generator=Cloze.named(CLOZE), key=names.cloze)
