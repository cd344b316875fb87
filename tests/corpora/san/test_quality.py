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
    ],
)
def test_each_flag(sentence, negative, flags):
    assert raised(sentence, negative) - {"authors"} == flags


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
