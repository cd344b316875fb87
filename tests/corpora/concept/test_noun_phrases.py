"""The noun phrases: their sizes, that no paraphrase repeats its phrase, and what is no head."""

from __future__ import annotations

from collections import Counter

import pytest

from corpora.concept.noun_phrases import (
    BLUNT,
    FAMILIES,
    PhrasePair,
    broader_of,
    fingerprint,
    heads_of,
    load,
    phrase_pairs,
)
from corpora.sources.english import FUNCTION_WORDS
from corpora.sources.wordnet import Wordnet
from corpora.sources.wordnet_files import WordnetFiles


@pytest.fixture(scope="module")
def pairs(real: Wordnet) -> tuple[PhrasePair, ...]:
    return tuple(phrase_pairs(real))


def test_families_and_regimes_have_the_papers_sizes(pairs: tuple[PhrasePair, ...]) -> None:
    """Section 4.5: 900, 800, 700, 800, 800, and 2,000 of each regime."""
    assert Counter(pair.family for pair in pairs) == {family: size for family, (size, _) in FAMILIES.items()}
    assert Counter(pair.regime for pair in pairs) == {"strict": 2000, "near": 2000}
    assert len({(pair.query, pair.regime) for pair in pairs}) == 4000
    assert len({pair.query for pair in pairs}) == 2001  # one near relational phrase has no strict one
    assert len({pair.paraphrase for pair in pairs}) > 3400


def test_heads_are_used_words_with_a_broader_one(real: Wordnet) -> None:
    for kind in ("artifact", "person"):
        heads = heads_of(real, kind)
        assert len(heads) == 90
        assert all(broader not in BLUNT and head not in broader for head, broader in heads.items())
    assert heads_of(real, "artifact")["car"] == "motor vehicle"
    assert heads_of(real, "person")["doctor"] == "medical practitioner"
    assert broader_of("person", real.senses["person", "n"][0], real) is None  # a living thing, which says nothing
    slurs = [word for word in heads_of(real, "person") if "slur" in real.synsets[real.senses[word, "n"][0]].gloss]
    assert slurs == []


def test_a_paraphrase_shares_no_content_word_with_its_modifier(pairs: tuple[PhrasePair, ...]) -> None:
    """ "see-through" may be "looked through": what carries the grammar alone is no content."""
    for pair in pairs:
        shared = set(pair.modifier.split("-")) & set(pair.paraphrase.split())
        assert shared - {pair.head} <= FUNCTION_WORDS
        assert not (pair.modifier == "so-called" and "calling" in pair.paraphrase)  # nor a form of one


def test_pairs_of_one_meaning_have_one_modifier_class(pairs: tuple[PhrasePair, ...]) -> None:
    of_meaning: dict[str, set[str]] = {}
    for pair in pairs:
        of_meaning.setdefault(f"{pair.regime} {pair.meaning}", set()).add(pair.modifier)
    assert max(len(modifiers) for modifiers in of_meaning.values()) == 2
    assert of_meaning["strict intersective 0 door"] <= {"wooden", "timber"}


def test_pairs_are_named_by_what_makes_them(real_files: WordnetFiles, pairs: tuple[PhrasePair, ...]) -> None:
    place = str(real_files.place)
    assert fingerprint(place) == fingerprint(place) != fingerprint(place, seed=1)
    assert load(place) == pairs
    assert load(place) is load(place)
