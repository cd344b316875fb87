"""Flags and shares of words, on pairs counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.san.quality import flags_of, kept
from corpora.san.records import BIT, FLAGS
from corpora.sources.shared_words import dice, jaccard, words_of


def raised(sentence: str, negative: str) -> set[str]:
    bits, _ = flags_of(sentence, negative)
    return {name for name in FLAGS if bits & BIT[name]}


def test_mostly_marks():
    assert raised("Stafford acting General Secretary.", "-., p.") == {"punct", "short", "detached", "authors"}


def test_a_sound_negative():
    """Of 11 words `moved`, `to`, `in` and `with` stay."""
    x, y = (
        "His wife moved to Australia in 1956 along with a daughter.",
        "They moved to london in 2013, with their son.",
    )
    bits, share = flags_of(x, y)
    assert (bits, share) == (0, pytest.approx(4 / 11))


def test_a_repeating_negative():
    bits, share = flags_of("The old man saw the small boat on the lake.", "the the the the small of the the the.")
    assert share == pytest.approx(0.4)
    assert raised("The old man saw the small boat on the lake.", "the the the the small of the the the.") == {
        "repeat"
    }
    assert bits == BIT["repeat"]


def test_the_rules_disagree_on_sound_short_sentences():
    assert raised("She stayed, too.", "He left, then.") & {"authors", "punct"} == {"authors"}


@pytest.mark.parametrize(
    ("sentence", "negative", "flags"),
    [
        ("He ran home.", "  ", {"empty", "short", "detached"}),
        ("He ran home.", "he ran  home", {"identical"}),
        ("He ran home to her.", "He ran home [UNK] now.", {"unk"}),
        ("He ran home to her.", "He ran", {"short"}),
        ("He ran home then.", "He ran", set()),  # half the words are no short rest
        ("He ran home.", "ran, home.", {"punct"}),  # as many marks as words
        ("He ran home.", "!", {"punct", "short", "detached"}),
        ("one two three four five six seven", "one up on to by at in", {"detached"}),  # 1 of 7 is below .15
        ("one two three four five six", "one up on to by at", set()),
        ("He ran home to her up.", "go up go up go up", {"repeat"}),  # 2 of 6 words are different
        ("He ran home to her up.", "go up on go up on", set()),
        ("He ran up to her.", "go up go up go", set()),  # too short to tell
        ("He ran up to her.", "go up up up", {"repeat"}),
        ("He ran up to her.", "up up go up up", set()),
    ],
)
def test_each_flag(sentence, negative, flags):
    assert raised(sentence, negative) - {"authors"} == flags


@pytest.mark.parametrize(
    ("negative", "fails"),
    [
        ("", True),
        ("  ", True),
        ("plain", False),
        ("a, b, c, d e f g h", True),  # 3 marks and 7 blanks
        ("a, b, c, d e f g h i", False),
        ("a, " * 16 + "ab", True),
        ("a, " * 16 + "abc", False),  # 51 letters are no short text
    ],
)
def test_the_released_codes_rule(negative, fails):
    assert ("authors" in raised("He ran home to her.", negative)) is fails


def test_overlaps_of_paraphrases():
    """Shared 7 of 13 words, 10 on each side; shared 3 of 9, 7 and 5 on each side."""

    def overlaps(a: str, b: str) -> tuple[float, float]:
        return jaccard(a, b), dice(a, b)

    assert overlaps(
        "The motocross rider is wearing blue and black pants",
        "Blue and black pants are being worn by the motocross rider",
    ) == pytest.approx((0.538461538, 0.7))
    assert overlaps("Broccoli are being cut by a woman", "A woman is cutting broccoli") == pytest.approx(
        (0.333333333, 0.5)
    )
    assert overlaps("...", "!") == (1.0, 1.0)


@given(st.text(alphabet="ab '.,", max_size=40))
def test_a_sentence_keeps_itself(text):
    assert kept(words_of(text), words_of(text)) == 1.0
    assert flags_of(text, text)[0] & BIT["identical"]
