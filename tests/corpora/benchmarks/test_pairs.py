"""What texts are called: alike where a reader takes them for the same, apart where their letters or signs are."""

from __future__ import annotations

import string
import unicodedata
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.benchmarks.pairs import numbered, text_key

FRENCH = "Où est le café préféré de l'élève ?"
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("कल", "काल"),
        ("काल", "कुल"),
        ("ปี", "ปู"),
        ("a cafe", "a café"),
        ("👍", "👎"),
        ("C++ is fast", "C is fast 1"),
        (".", "*"),
        ("", "?"),
        ("\ud83d", "\udc4d"),  # halves of a sign, which JSON can hold
    ],
)
def test_what_differs_by_a_letter_a_mark_or_all_its_signs_is_apart(one: str, other: str) -> None:
    assert text_key(one) != text_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((FRENCH, unicodedata.normalize(form, FRENCH)) for form in FORMS),
        ("Straße", "STRASSE"),
        ("the ﬁrst ２ rows", "The first 2 rows."),
        ("I like it ❤\ufe0f", "I like it ❤"),  # the selector says that the heart has a colour
        ("It´s 5 pm", "Its 5 pm"),  # a sign that NFKC would make a mark of
        ("ϓ", "\u03d2\u0301"),
        ("👍 👍", "👍👍"),
    ],
)
def test_what_is_the_same_in_another_encoding_or_case_is_one(one: str, other: str) -> None:
    assert text_key(one) == text_key(other)


@given(st.text(max_size=12))
def test_no_encoding_tells_texts_apart(text: str) -> None:
    assert len({text_key(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")} | {text_key(text)}) == 1


@given(st.text(string.printable), st.text(string.printable, min_size=1))
def test_plain_texts_are_called_as_ever(one: str, other: str) -> None:
    """sha256 of their ASCII letters and digits, in small letters, the lesser text first."""
    one, other = f"{one}a", f"{other}7"
    bare = sorted(
        "".join(c for c in text.lower() if c in string.ascii_lowercase + string.digits) for text in (one, other)
    )
    assert text_key(one, other) == text_key(other, one) == sha256("\t".join(bare).encode()).hexdigest()[:16]


def test_a_second_and_a_third_of_one_name_are_numbered() -> None:
    assert numbered(["a", "b", "a", "a"]) == ["a", "b", "a-2", "a-3"]


@given(st.lists(st.sampled_from(["a", "b", "a-2", "a-3", "a-2-2", ""])))
def test_repetitions_are_numbered_past_names_that_look_so(ids: list[str]) -> None:
    apart = numbered(ids)
    assert len(set(apart)) == len(ids)
    assert all(new == old or new.startswith(f"{old}-") for new, old in zip(apart, ids, strict=True))
