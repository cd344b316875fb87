"""Positive pairs of a lexicon: synonyms, and terms with their masked definitions (CONCEPT, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from typing import NamedTuple

from corpora.concept.splits import KEPT_WORDS
from corpora.sources.texts import shown, word_count
from corpora.sources.wordnet import Synset


class SynonymRow(NamedTuple):
    concept: str
    left: str
    right: str


class DefinitionRow(NamedTuple):
    concept: str
    term: str
    definition: str


def distinct_lemmas(synset: Synset) -> list[str]:
    """The lemmas as shown, without those that differ from an earlier one in case alone."""
    first: dict[str, str] = {}
    for lemma in synset.lemmas:
        first.setdefault(lemma.lower(), shown(lemma))
    return list(first.values())


def synonym_rows(synsets: Iterable[Synset]) -> Iterator[SynonymRow]:
    """Every ordered pair of distinct lemmas of every synset. Similar-to neighbours are no synonyms."""
    for synset in synsets:
        for left, right in permutations(distinct_lemmas(synset), 2):
            yield SynonymRow(synset.id, left, right)


def definition_rows(synsets: Iterable[Synset], masked: Callable[[Synset, str], str]) -> Iterator[DefinitionRow]:
    """Every distinct (lemma, masked definition) whose definition keeps at least two words.

    masked: (synset, lemma) -> the definition without the term. Two synsets of one lemma that share a definition
    make one row, filed under the first.
    """
    seen: set[tuple[str, str]] = set()
    for synset in synsets:
        for lemma in synset.lemmas:
            definition = masked(synset, lemma)
            row = (lemma.lower(), definition)
            if row not in seen and word_count(definition) >= KEPT_WORDS:
                seen.add(row)
                yield DefinitionRow(synset.id, shown(lemma), definition)
