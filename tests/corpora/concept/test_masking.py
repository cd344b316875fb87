from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.concept.masking import erase, irregular_of, masker, pattern_of
from corpora.sources.texts import WORD, word_count
from corpora.sources.wordnet import Wordnet

IRREGULAR = {
    "n": {"man": frozenset({"men"})},
    "v": {"go": frozenset({"went", "gone"})},
    "a": {},
    "r": {},
}


@pytest.mark.parametrize(
    ("lemma", "pos", "definition", "masked"),
    [
        ("box", "n", "a boxer the boxes", "a boxer the"),
        ("mother-in-law", "n", "two mothers-in-law met", "two met"),
        ("go", "v", "one that went and goes", "one that and"),
        ("happy", "a", "happier than the unhappy man", "than the unhappy man"),
        ("tea", "n", "leaves of the tea plant; team", "leaves of the plant; team"),
        ("May", "n", "the month of May, or may not", "the month of, or may not"),
        ("may", "n", "May flowers", "flowers"),
        ("Snow_Man", "n", "Snow Men, not snow men", "not snow men"),
        ("look_up", "v", "looking up, or looked-up", "or"),
        ("fire man", "n", "(fire-men) of old", "of old"),
        ("dog", "n", "a dog's life; dogs' days", "a life; days"),
        ("car", "n", "a scar; car", "a scar"),
    ],
)
def test_what_is_taken_out(lemma: str, pos: str, definition: str, masked: str) -> None:
    assert erase(definition, pattern_of([lemma], pos, IRREGULAR)) == masked


def test_longest_lemma_goes_first() -> None:
    """Else `hot` would be taken out of `hot dog`, and `dog` left."""
    for lemmas in (["hot", "dog", "hot_dog"], ["hot", "hot_dog"]):
        pattern = pattern_of(lemmas, "n", IRREGULAR)
        assert erase("a hot dog in a bun", pattern) == "a in a bun"


def test_parts_that_meet_are_taken_out_too() -> None:
    pattern = pattern_of(["ice", "cold cream"], "n", IRREGULAR)
    assert erase("a cold ice cream dish", pattern) == "a dish"


def test_a_token_can_stand_in() -> None:
    pattern = pattern_of(["mask"], "n", IRREGULAR)
    assert erase("a mask worn", pattern, "[MASK]") == "a [MASK] worn"


LETTERS = st.text(alphabet="abcdexyz", min_size=1, max_size=6)


@given(
    LETTERS,
    st.sampled_from("nvar"),
    st.lists(st.one_of(LETTERS, st.sampled_from([",", "(", ")", ";", "the"])), max_size=12),
)
def test_nothing_of_the_term_is_left_and_nothing_else_is_lost(lemma: str, pos: str, parts: list[str]) -> None:
    pattern = pattern_of([lemma], pos, IRREGULAR)
    definition = " ".join([*parts, lemma])
    masked = erase(definition, pattern)
    assert not pattern.search(masked)
    assert erase(masked, pattern) == masked
    kept = [part for part in parts if part.isalpha() and not pattern.fullmatch(part)]
    assert WORD.findall(masked) == kept


def test_real_definitions(real: Wordnet, real_masked: dict[str, str]) -> None:
    """How often a term occurs in its own definition, per concept and per term, and what is left too short.

    No masked definition matches its own mask.
    """
    irregular = irregular_of(real)
    changed = [synset for synset in real.synsets.values() if real_masked[synset.id] != synset.definition]
    assert len(changed) == 7_824
    assert sum(word_count(text) < 2 for text in real_masked.values()) == 974
    for synset in changed:
        assert not pattern_of(synset.lemmas, synset.pos, irregular).search(real_masked[synset.id])
    own = [
        erase(synset.definition, pattern)
        for synset in changed
        for lemma in synset.lemmas
        if (pattern := pattern_of([lemma], synset.pos, irregular)).search(synset.definition)
    ]
    assert len(own) == 8_257
    assert sum(word_count(text) < 2 for text in own) == 172


def test_derivations_are_kept_unless_asked_for(real: Wordnet) -> None:
    deanship = real.synsets[real.senses["deanship", "n"][0]]
    assert "dean" in masker(real)(deanship, deanship.lemmas).split()
    assert "dean" not in masker(real, derivations=True)(deanship, deanship.lemmas).split()
