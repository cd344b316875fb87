"""Dictionaries beside WordNet: their senses as training rows, and pairs of definitions across both (d2d).

Senses of two dictionaries are not aligned: what pairs two definitions is that they define one word, as one part of
speech. Source: Concept, section 4.5 and appendix B.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from corpora.concept.masking import word_masker
from corpora.concept.splits import KEPT_WORDS, Splits
from corpora.concept.views import DefinitionRow, SynonymRow
from corpora.sources import gcide, wiktextract
from corpora.sources.dictionary import DictionarySense, Word
from corpora.sources.texts import norm, normdef, word_count
from corpora.sources.wordnet import Synset, Wordnet

if TYPE_CHECKING:
    from corpora.concept.data import ConceptData

PER_TERM = 6  # definitions, from both dictionaries together (Concept, section 4.5)
PER_SIDE = PER_TERM // 2


class CrossRow(NamedTuple):
    """Two definitions of one term, of a synset and of a sense of another dictionary."""

    concepts: tuple[str, str]
    term: str
    left: str
    right: str


def senses(data: ConceptData, lexicon: Wordnet, counts: Counter[Word] | None = None) -> list[DictionarySense]:
    """The senses of the study's dictionaries, masked, without what WordNet says word for word.

    The word of a sense is taken out of its definition in every form; what then keeps fewer than two words is left
    out, and so is what repeats a row. counts: counts the senses of every word, these and those that are left out.
    """
    mask = word_masker(lexicon, mask_token=data.mask_token)
    known = {normdef(synset.definition) for synset in lexicon.synsets.values()}
    seen: set[tuple[str, str]] = set()
    kept = []
    for sense in _sources(data, counts):
        if normdef(sense.definition) in known:
            continue
        masked = mask(sense.definition, (sense.term, *sense.forms), sense.pos)
        row = (sense.term.lower(), masked)
        if word_count(masked) >= KEPT_WORDS and row not in seen:
            seen.add(row)
            kept.append(replace(sense, definition=masked))
    return kept


def _sources(data: ConceptData, counts: Counter[Word] | None) -> Iterator[DictionarySense]:
    if "gcide" in data.lexicons:
        yield from gcide.senses(gcide.locate(data.gcide), counts)
    if "wiktextract" in data.lexicons:
        yield from wiktextract.read(wiktextract.locate(data.wiktextract), counts=counts)


def rows_of(
    senses: Iterable[DictionarySense], splits: Splits
) -> tuple[list[SynonymRow], list[DefinitionRow], list[DictionarySense]]:
    """Synonym and definition rows that hold nothing held out, no surface and no wording, and the senses kept."""
    kept = [sense for sense in senses if splits.allow(sense.concept, (sense.term,), (sense.definition,))]
    synonyms = [
        SynonymRow(sense.concept, *pair)
        for sense in kept
        for synonym in sense.synonyms
        if splits.allow(sense.concept, (synonym,))
        for pair in ((sense.term, synonym), (synonym, sense.term))
    ]
    return synonyms, [DefinitionRow(sense.concept, sense.term, sense.definition) for sense in kept], kept


def cross_rows(
    lexicon: Wordnet,
    senses: Iterable[DictionarySense],
    splits: Splits,
    row_text: Callable[[Synset, str], str],
    counts: Mapping[Word, int] | None = None,
) -> list[CrossRow]:
    """Every definition of WordNet with every other one of the same surface and part of speech.

    senses: those that may be trained on. At most six definitions of a term: three of each side, and where one has
    fewer the other has more, WordNet's in the order of its senses, the others in the order of their text.
    counts: of every word's senses, if only terms with one sense in WordNet and in the other dictionary are to be
    paired, which are aligned by that.
    """
    others: dict[tuple[str, str], list[DictionarySense]] = defaultdict(list)
    for sense in senses:
        if counts is None or counts[sense.word] == 1:
            others[norm(sense.term), sense.pos].append(sense)
    own: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for (lemma, pos), identifiers in lexicon.senses.items():
        if (norm(lemma), pos) in others:
            own[norm(lemma), pos] |= dict.fromkeys(identifiers, lemma)
    rows = []
    for place, listed in others.items():
        theirs = _told(((sense.concept, sense.definition) for sense in listed), splits, place[0])
        ours = _told(
            (
                (identifier, row_text(lexicon.synsets[identifier], lemma))
                for identifier, lemma in own[place].items()
                if splits.allow(identifier, (), (lexicon.synsets[identifier].definition,))
            ),
            splits,
            place[0],
        )
        if counts is not None and len(own[place]) != 1:
            continue
        first, second = capped(len(ours), len(theirs))
        rows += [
            CrossRow((concept, other), place[0], left, right)
            for concept, left in ours[:first]
            for other, right in theirs[:second]
            if left != right
        ]
    return rows


def capped(ours: int, theirs: int) -> tuple[int, int]:
    """How many definitions of each side are paired: at most three and three, topped up to six from the longer."""
    first, second = min(ours, PER_SIDE), min(theirs, PER_SIDE)
    if first and second:
        first = min(ours, PER_TERM - second)
        second = min(theirs, PER_TERM - first)
    return first, second


def _told(found: Iterable[tuple[str, str]], splits: Splits, term: str) -> Sequence[tuple[str, str]]:
    """Concepts and definitions that hold nothing held out and keep at least two words, each wording once."""
    kept: dict[str, str] = {}
    for concept, definition in found:
        if word_count(definition) >= KEPT_WORDS and splits.allow(concept, (term,), (definition,)):
            kept.setdefault(definition, concept)
    return [(concept, definition) for definition, concept in kept.items()]
