"""Words, marks and clitics of a text, and the casing of what replaces them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.san.english_tokens import spans, tokens_of
from corpora.san.mask_predict import TaggedTokens
from corpora.san.splicing import cased, spliced


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("She didn't go.", ["she", "did", "n't", "go", "."]),
        (
            "It's the dogs' well-known bone...",
            ["it", "'s", "the", "dogs", "'", "well", "-", "known", "bone", "..."],
        ),
        ("1,000.5 on the 20th, in the 1980s", ["1,000.5", "on", "the", "20th", ",", "in", "the", "1980s"]),
        ("naïve“x”", ["naïve", "“", "x", "”"]),
        ("can't", ["ca", "n't"]),
    ],
)
def test_tokens(text, tokens):
    assert tokens_of(text) == tokens


@given(st.text(max_size=40))
def test_tokens_leave_out_nothing_but_blanks(text):
    covered = "".join(text[a:b] for a, b in spans(text))
    assert covered == "".join(letter for letter in text if not letter.isspace())


@pytest.mark.parametrize(
    ("word", "like", "made"),
    [
        ("boat", "Ship", "Boat"),
        ("boat", "SHIP", "BOAT"),
        ("boat", "ship", "boat"),
        ("boat", "OK", "BOAT"),
        ("boat", "U.S", "BOAT"),
        ("boat", "McShip", "boat"),
        ("boat", "SHip", "boat"),
        ("he", "I", "He"),
        ("a", "1", "a"),
    ],
)
def test_casing(word, like, made):
    assert cased(word, like=like) == made


def test_a_piece_inside_a_word_is_upper_with_one_capital():
    assert cased("s", like="S", begins_word=False) == "S"
    assert cased("s", like="1", begins_word=False) == "s"


def test_replaced_tokens_alone_change():
    text = "The  OLD cat, sat!"
    start, end = (np.array(column) for column in zip(*spans(text), strict=True))
    tokens = TaggedTokens(np.array([0, 1, 2, 3, 4, 5]), np.zeros(6, np.uint8), start, end)
    assert spliced(text, tokens, tokens.ids, ()) == text
    surfaces = ["the", "old", "cat", ",", "sat", "!", "big", "a"]
    assert spliced(text, tokens, np.array([7, 6, 2, 3, 4, 5]), surfaces) == "A  BIG cat, sat!"


@pytest.mark.parametrize(
    ("text", "made"), [("I ran", "He ran"), ("so I ran", "so He ran"), ("WxI ran", "WxHE ran")]
)
def test_one_capital_is_a_title_where_a_word_begins_and_upper_inside_of_one(text, made):
    at = text.index("I")
    tokens = TaggedTokens(np.array([0]), np.zeros(1, np.uint8), np.array([at]), np.array([at + 1]))
    assert spliced(text, tokens, np.array([1]), ["i", "he"]) == made
