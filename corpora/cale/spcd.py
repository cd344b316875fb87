"""SPCD's occurrences: which annotated words of SemCor are kept, and with which concept (CALE, appendix A).

    occurrences = tagged(read(locate().texts), lexicon, data)       # 67,125 with the default settings

A concept is a WordNet synset, written as its part of speech and offset: v01009258. Satellite adjectives count as
adjectives. Departures: the appendix leaves open what a sentence's length counts, which of several senses is taken
and how proper nouns are recognised; docs/cale.md shows the readings that were tried.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from corpora.cale.records import POS, SPLITS, Tagged
from corpora.sources.occurrences import Occurrence
from corpora.sources.semcor import Sentence, Word
from corpora.sources.texts import keyed_sha256
from corpora.sources.wordnet import Synset, Wordnet

if TYPE_CHECKING:
    from corpora.cale.data import CaleData

# The fields of the data block that decide which rows there are.
RULES = (
    *("seed", "length_unit", "min_len", "max_len", "multi_sense", "min_count"),
    *("partner_pool", "val", "test"),
)
_PLAIN = re.compile(r"[a-z]{3,}")


def tagged(sentences: Iterable[Sentence], lexicon: Wordnet, data: CaleData) -> list[Tagged]:
    """The occurrences, sorted by id, each with its split. The order of the sentences does not matter."""
    found = [row for sentence in sentences for row in _of_sentence(sentence, lexicon, data)]
    counts = Counter((row.occurrence.lemma, row.pos) for row in found)
    kept = sorted(row for row in found if counts[row.occurrence.lemma, row.pos] >= data.min_count)
    reserved = Reserved.of(kept, data)
    return [row._replace(split=reserved.split_of(row)) for row in kept]


def _of_sentence(sentence: Sentence, lexicon: Wordnet, data: CaleData) -> Iterator[Tagged]:
    length = len(sentence.words if data.length_unit == "annotated" else sentence.tokens)
    if not data.min_len <= length <= data.max_len:
        return
    tokens = [token.replace("_", " ") for token in sentence.tokens]
    text = " ".join(tokens)
    for word in sentence.words:
        synset = _sense(word, lexicon, data)
        if synset is None or synset.pos not in POS or word.proper or not _PLAIN.fullmatch(word.lemma):
            continue
        if _spelling(word.lemma, synset) != word.lemma:
            continue  # a proper noun: WordNet writes it with a capital
        start = sum(map(len, tokens[: word.place])) + word.place
        yield Tagged(
            id=f"{sentence.file}:{sentence.number}:{word.place}",
            occurrence=Occurrence(text, start, start + len(tokens[word.place]), word.lemma),
            concept=concept_of(synset),
            pos=synset.pos,
            lexname=synset.lexname,
        )


def rules_of(data: CaleData) -> dict[str, Any]:
    return {name: getattr(data, name) for name in RULES}


def concept_of(synset: Synset) -> str:
    """v01009258: the part of speech, then the offset."""
    offset, _, pos = synset.id.partition("-")
    return pos + offset


def synset_id(concept: str) -> str:
    """The id of a concept's synset: 01009258-v."""
    return f"{concept[1:]}-{concept[0]}"


def _sense(word: Word, lexicon: Wordnet, data: CaleData) -> Synset | None:
    """The first sense that WordNet 3.0 has; None if there are several and `multi_sense` drops the word."""
    if len(word.keys) > 1 and data.multi_sense == "drop":
        return None
    found = (lexicon.keys.get(key) for key in word.keys)
    return next((lexicon.synsets[identifier] for identifier in found if identifier), None)


def _spelling(lemma: str, synset: Synset) -> str:
    """The lemma as the synset writes it; of several spellings (sun, Sun; but Moon, moon) the first."""
    return next((written for written in synset.lemmas if written.lower() == lemma), lemma)


class Reserved(NamedTuple):
    """Lemmas and concepts held out from training: name -> "val" or "test"."""

    lemmas: dict[str, str]
    concepts: dict[str, str]

    @staticmethod
    def of(rows: Iterable[Tagged], data: CaleData) -> Reserved:
        """A keyed draw of the lemmas and one of the concepts: first val's share of each, then test's."""
        lemmas, concepts = set(), set()
        for row in rows:
            lemmas.add(row.occurrence.lemma)
            concepts.add(row.concept)
        return Reserved(_drawn(lemmas, "lemma", data), _drawn(concepts, "concept", data))

    def split_of(self, row: Tagged) -> str:
        """The split of an occurrence, by its reserved lemma or concept: test before val before train."""
        claims = {self.lemmas.get(row.occurrence.lemma, "train"), self.concepts.get(row.concept, "train")}
        return max(claims, key=SPLITS.index)


def _drawn(names: Iterable[str], kind: str, data: CaleData) -> dict[str, str]:
    order = sorted(names, key=lambda name: (keyed_sha256(data.seed, kind, name), name))
    val = round(data.val * len(order))
    test = round(data.test * len(order))
    return dict.fromkeys(order[:val], "val") | dict.fromkeys(order[val : val + test], "test")
