"""Builds the rows: dictionaries -> words with definitions -> split by word."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from corpora.defsent import oxford
from corpora.defsent.data import DefsentData
from corpora.defsent.records import Sourced, Split
from corpora.defsent.splits import mentions, normalised, split_words
from corpora.sources import gcide, wordnet_files
from corpora.sources.texts import shown
from corpora.sources.wordnet import Wordnet
from corpora.sources.wordnet import read as read_wordnet
from corpora.store.errors import CorpusError

LEAST_WORDS = 10  # so that dev and test have one each


def build_rows(data: DefsentData) -> Split:
    """The rows of every split, words in the order of the split, the rows of a word by id.

    A row that repeats is left out, by word and definition over all sources, unless it is to be kept. DefSent
    writes its training file word by word too, which is what `order: file` goes through.
    """
    seen: set[tuple[str, str]] = set()
    by_key: dict[str, list[tuple[str, str, Sourced]]] = defaultdict(list)
    for row in sourced(data):
        if (row.word, row.definition) in seen and (row.source != "oxford" or data.dedupe_definitions):
            continue
        seen.add((row.word, row.definition))
        key = normalised(row.word) if data.split_key == "normalised" else row.word
        by_key[key].append((row_id(row), key, row))
    if len(by_key) < LEAST_WORDS:
        raise CorpusError(
            f"data.sources = {list(data.sources)!r} hold {len(by_key)} words\n  accepted: at least {LEAST_WORDS}"
        )
    parts: Split = {
        name: [row for key in keys for row in sorted(by_key[key])]
        for name, keys in split_words(by_key, data.split_seed).items()
    }
    if data.drop_self_mention:
        parts["train"] = [row for row in parts["train"] if not mentions(row[2].word, row[2].definition)]
    return parts


def row_id(row: Sourced) -> str:
    """16 hexadecimal digits of sha256 over source, word and definition."""
    return hashlib.sha256("\x1f".join((row.source, row.word, row.definition)).encode()).hexdigest()[:16]


def sourced(data: DefsentData) -> Iterator[Sourced]:
    """The rows of the study's dictionaries, without GCIDE's copies of WordNet if WordNet is one of them."""
    if "wordnet" in data.sources:
        yield from from_wordnet(read_wordnet(wordnet_files.locate(data.wordnet)))
    if "gcide" in data.sources:
        yield from from_gcide(gcide.locate(data.gcide), with_wordnet="wordnet" not in data.sources)
    if "oxford" in data.sources:
        yield from oxford.read(oxford.locate(data.oxford), fixed=data.oxford_cleaning == "fixed")


def from_wordnet(lexicon: Wordnet) -> Iterator[Sourced]:
    """Every lemma of every synset with the synset's definition, the examples left out."""
    for synset in lexicon.synsets.values():
        for lemma in synset.lemmas:
            yield Sourced("wordnet", shown(lemma), synset.definition, synset.pos)


def from_gcide(place: Path, *, with_wordnet: bool) -> Iterator[Sourced]:
    """Every sense of every entry."""
    for entry in gcide.read(place):
        if with_wordnet or not entry.from_wordnet:
            for sense in entry.senses:
                yield Sourced("gcide", entry.head, sense, entry.pos)
