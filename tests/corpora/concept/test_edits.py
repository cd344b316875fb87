"""The two rules that edit a definition: turn one word to its opposite, deny the whole with one word."""

from __future__ import annotations

from collections import Counter

import pytest

from corpora.concept.antonyms import Antonyms, replace_word
from corpora.concept.negation import Negation
from corpora.sources.wordnet import Wordnet

WORKED = [
    (
        "a vessel that holds cold drinks",
        "a vessel that holds hot drinks",
        "a vessel that not holds cold drinks",
        "lexical",
    ),
    ("a coat which is worn in winter", None, "a coat which is not worn in winter", "aux"),
    (
        "a fence that does not keep animals out",
        "a fence that does not lose animals out",
        "a fence that does keep animals out",
        "toggle",
    ),
    (
        "the driest month of the year",
        "the wettest month of the year",
        "not the driest month of the year",
        "prefix",
    ),
    ("a rise in the price of goods", "a fall in the price of goods", "not a rise in the price of goods", "prefix"),
    (
        "buys goods at the lowest price",
        "sells goods at the lowest price",
        "not buys goods at the lowest price",
        "prefix",
    ),
    (
        "any of the larger whales with a thinner skin",
        "any of the larger whales with a thicker skin",
        "not any of the larger whales with a thinner skin",
        "prefix",
    ),
    ("a rule stating what one may do", None, "a rule stating what one may not do", "aux"),
]


@pytest.mark.parametrize(("definition", "flipped", "denied", "kind"), WORKED)
def test_worked_examples(real: Wordnet, definition: str, flipped: str | None, denied: str, kind: str) -> None:
    edit = Antonyms(real).edit(definition)
    assert (edit[0] if edit else None) == flipped
    assert Negation(real).edit(definition) == (denied, kind)


@pytest.mark.parametrize(
    ("definition", "flipped", "kind"),
    [
        ("a happy end", "an unhappy end", "direct"),  # the article is made to agree
        ("a clear sky", "an unclear sky", "direct"),
        ("Cold water", "Hot water", "direct"),
        ("a rise or a fall", None, None),  # its antonym is there already
        ("a tiny box", "a large box", "indirect"),  # tiny clusters around small
        ("a Cold Duck", None, None),  # capitals inside a definition are names
        ("the state of being", None, None),  # light and function words are never flipped
    ],
)
def test_antonym_details(real: Wordnet, definition: str, flipped: str | None, kind: str | None) -> None:
    edit = Antonyms(real).edit(definition)
    assert edit == ((flipped, kind) if flipped else None)


def test_the_small_lexicon_has_its_own_opposites(small: Wordnet) -> None:
    assert Antonyms(small).edit("a cold thing") == ("a hot thing", "direct")
    assert Antonyms(small).edit("an icy thing") == ("a hot thing", "indirect")
    assert Antonyms(small).edit("a hand") is None


@pytest.mark.parametrize(
    ("definition", "denied", "kind"),
    [
        ("Not now but later", "now but later", "toggle"),
        ("able to do work", "not able to do work", "prefix"),  # no finite verb after "to"
        ("a can is a tin", "a can is not a tin", "aux"),  # a noun after a determiner is no auxiliary
        ("a thing that can fly", "a thing that can not fly", "aux"),
        ("one who usually writes", "one who usually not writes", "lexical"),
        ("a box in which rain falls", "not a box in which rain falls", "prefix"),  # rain is no finite verb here
        ("a person who, wondering, leaves", "not a person who, wondering, leaves", "prefix"),
        ("things that water plants", "not things that water plants", "prefix"),  # water is also a noun
        ("something that eats", "something that not eats", "lexical"),
        ("things that bring luck", "things that not bring luck", "lexical"),  # no -ing form, though it ends so
        ("food that eating spoils", "not food that eating spoils", "prefix"),  # an -ing form is no finite verb
        ("who eats meat", "who not eats meat", "lexical"),
        ("eats this or that", "not eats this or that", "prefix"),  # the first word is after no relative
        ("short", "not short", "prefix"),
    ],
)
def test_negation_details(real: Wordnet, definition: str, denied: str, kind: str) -> None:
    assert Negation(real).edit(definition) == (denied, kind)


def test_negation_changes_one_token(real: Wordnet) -> None:
    """Every denial adds or removes one *not*, whatever the definition."""
    negation = Negation(real)
    for synset in list(real.synsets.values())[::500]:
        denied, kind = negation.edit(synset.definition)
        before, after = Counter(synset.definition.split()), Counter(denied.split())
        changed = (before - after) if kind == "toggle" else (after - before)
        assert [word.strip("();,.`'").lower() for word in changed.elements()] == ["not"]


def test_kinds_over_all_definitions(real: Wordnet) -> None:
    """How often each edit is possible; regressions show here. Which words count as function words moves these."""
    antonyms, negation = Antonyms(real), Negation(real)
    definitions = [synset.definition for synset in real.synsets.values()]
    kinds = Counter(negation.edit(definition)[1] for definition in definitions)
    assert kinds["toggle"] == 3_056
    assert kinds["lexical"] == pytest.approx(10_166, rel=0.01)
    assert kinds["aux"] == pytest.approx(11_526, rel=0.01)
    flips = Counter(edit[1] for definition in definitions if (edit := antonyms.edit(definition)))
    assert flips["direct"] == pytest.approx(74_449, rel=0.03)
    assert flips["indirect"] == pytest.approx(10_749, rel=0.06)


def test_replaced_word_keeps_capital_and_article() -> None:
    assert replace_word("An old dog", 3, 6, "young") == "A young dog"
    assert replace_word("Old dogs", 0, 3, "young") == "Young dogs"
