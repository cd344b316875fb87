"""Dictionaries beside WordNet: their senses as training rows, and pairs of definitions across both (d2d).

Senses of two dictionaries are not aligned: two definitions are paired if they define the same word in the same
part of speech. Source: Concept, section 4.5 and appendix B.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from corpora.concept.masking import word_masker
from corpora.concept.splits import KEPT_WORDS, Splits
from corpora.concept.views import DefinitionRow, SynonymRow
from corpora.sources import gcide, wiktextract
from corpora.sources.dictionary import DictionarySense, Word
from corpora.sources.texts import norm, normdef, word_count
from corpora.sources.wordnet import Synset, Wordnet
from corpora.store.errors import CorpusError

if TYPE_CHECKING:
    from corpora.concept.data import ConceptData

PER_TERM = 6  # the most definitions of both dictionaries together (Concept, section 4.5)
PER_SIDE = PER_TERM // 2


class CrossRow(NamedTuple):
    """Two definitions of one term: a synset's and that of another dictionary's sense."""

    concepts: tuple[str, str]
    term: str
    left: str
    right: str


class Dictionary(NamedTuple):
    """A dictionary to read. left_out: reason -> number of senses left out so far."""

    place: Path
    accepted: str
    senses: Iterator[DictionarySense]
    left_out: Counter[str]

    @property
    def refusal(self) -> CorpusError:
        """The error message for a dictionary of which no sense is kept."""
        reasons = ", ".join(f"{number:,} {why}" for why, number in self.left_out.items())
        left_out = f"; left out: {reasons}" if reasons else ""
        return CorpusError(
            f"corpora: {self.place} holds no sense to train on{left_out}\n  accepted: {self.accepted}"
        )


def senses(data: ConceptData, lexicon: Wordnet, counts: Counter[Word] | None = None) -> list[DictionarySense]:
    """The masked senses of the study's dictionaries, without definitions that are also WordNet's.

    Every form of the word is removed from its definition. Senses with fewer than two words left, and repeated
    rows, are left out. counts: gets the number of senses of every word, including those left out. CorpusError for
    a dictionary of which nothing is kept.
    """
    mask = word_masker(lexicon, mask_token=data.mask_token)
    known = {normdef(synset.definition) for synset in lexicon.synsets.values()}
    seen: set[tuple[str, str]] = set()
    kept: list[DictionarySense] = []
    for other in _others(data, counts):
        before = len(kept)
        for sense in other.senses:
            masked = mask(sense.definition, (sense.term, *sense.forms), sense.pos)
            row = (sense.term.lower(), masked)
            if normdef(sense.definition) in known:
                other.left_out["as WordNet has it"] += 1
            elif word_count(masked) < KEPT_WORDS:
                other.left_out[f"fewer than {KEPT_WORDS} words beside the term"] += 1
            elif row in seen:
                other.left_out["said before"] += 1
            else:
                seen.add(row)
                kept.append(replace(sense, definition=masked))
        if len(kept) == before:
            raise other.refusal
    return kept


def _others(data: ConceptData, counts: Counter[Word] | None) -> Iterator[Dictionary]:
    if "gcide" in data.lexicons:
        place, left_out = gcide.locate(data.gcide), Counter[str]()
        yield Dictionary(place, gcide.ACCEPTED, gcide.senses(place, left_out, counts), left_out)
    if "wiktextract" in data.lexicons:
        place, left_out = wiktextract.locate(data.wiktextract), Counter[str]()
        yield Dictionary(place, wiktextract.ACCEPTED, wiktextract.read(place, left_out, counts), left_out)


def rows_of(
    senses: Iterable[DictionarySense], splits: Splits
) -> tuple[list[SynonymRow], list[DefinitionRow], list[DictionarySense]]:
    """Synonym and definition rows without a held-out surface or wording, and the senses kept."""
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

    senses: those that may be trained on. A term has at most six definitions: three of each side, or more of one
    side if the other has fewer; WordNet's in the order of senses, the others in the order of text. counts: the
    number of senses of every word, to pair only terms with one sense on each side, which are thereby aligned.
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
        if counts is not None and len(own[place]) != 1:
            continue
        theirs = _once_each((sense.concept, sense.definition) for sense in listed)
        shown = {synset: row_text(lexicon.synsets[synset], lemma) for synset, lemma in own[place].items()}
        ours = _once_each(
            (synset, text)
            for synset, text in shown.items()
            if word_count(text) >= KEPT_WORDS
            and splits.allow(synset, (), (text, lexicon.synsets[synset].definition))
        )
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
    return min(ours, max(PER_SIDE, PER_TERM - theirs)), min(theirs, max(PER_SIDE, PER_TERM - ours))


def _once_each(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Concepts and definitions, each definition once, with the first of its concepts."""
    first: dict[str, str] = {}
    for concept, definition in found:
        first.setdefault(definition, concept)
    return [(concept, definition) for definition, concept in first.items()]
