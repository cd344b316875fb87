"""Names as data: shown on one line, cut to a width, called differently in files however alike they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.store.fields import is_name
from orchestration.study.names import amount, cut, is_path_component, listed, printable, slug


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("B1 − B0, 日本 é", "B1 − B0, 日本 é"),
        ("red \x1b[31m", "red \\x1b[31m"),
        ("two\nlines", "two\\nlines"),
        ("left\u202eright", "left\\u202eright"),
        ("half \ud800", "half \\ud800"),
        ("next\u2028line", "next\\u2028line"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (2.7778e-5, "0.0000278"),
        (0.17649, "0.176"),
        (12.34, "12.3"),
        (99.96, "100"),
        (2400.4, "2,400"),
        (1e6, "1,000,000"),
    ],
)
def test_an_amount_has_no_power_of_ten(value: float, shown: str) -> None:
    assert amount(value) == shown


def test_printable_keeps_what_it_is_told_to() -> None:
    assert printable("a\nb\tc", keep="\n") == "a\nb\\tc"


@given(st.text(st.characters()))
def test_printable_text_stays_on_its_line_and_can_be_written(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    shown.encode()


@given(st.lists(st.text(st.characters(), max_size=80), unique=True, min_size=2))
def test_no_two_texts_share_a_slug(texts: list[str]) -> None:
    slugs = [slug(text) for text in texts]
    assert len(set(slugs)) == len(texts)
    assert all(re.fullmatch(r"[A-Za-z0-9._+-]{1,69}", one) and is_path_component(one) for one in slugs)


def test_a_plain_name_is_its_own_slug() -> None:
    assert slug("simcse+san") == "simcse+san"
    assert slug("B1-noHN") == "B1-noHN"


def test_a_name_cannot_take_the_slug_of_another() -> None:
    taken = slug("H 1")
    assert re.fullmatch(r"H-1-[0-9a-f]{8}", taken)
    assert slug(taken) != taken


@pytest.mark.parametrize(
    "name", ["B1", "simcse+san", "B1 {lr 1e-3}", "$x$", "[H1]", "日本", "é", "กี่", "क्षि", "x" * 100, "a|b"]
)
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    ["", " B1", "B1 ", "a\nb", "\x1b[31m", "x" * 101, "אב", "مرحبا", "a\u202eb", "\ud800", "a\u200bb", "a\u00a0b", "\uffff"],
)  # fmt: skip
def test_no_names(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    "name",
    ["\u3164", "\u2800", "B1\ufe0f", "B\u034f1", "B1\U000e0101", "\u115fB1", "e\u0301", "\u0301B1", "q" + 4 * "\u0301"],
)  # fmt: skip
def test_what_shows_nothing_or_looks_like_another_is_no_name(name: str) -> None:
    """Fillers, selectors of a form, an accent apart from its letter, which looks as é does, and a heap of accents."""
    assert not is_name(name)


@pytest.mark.parametrize("name", ["x" * 200, "é" * 100, "a b", "a.b", "a..", "日本", "50%", "~x"])
def test_one_part_of_a_path(name: str) -> None:
    assert is_path_component(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b", "/a", "a/", "a\\b", "a\0", "a\n", " a", "a ", "x" * 201, "é" * 101, "a\ud800"],
)  # fmt: skip
def test_what_is_more_than_one_part_of_a_path_or_none(name: str) -> None:
    assert not is_path_component(name)


def test_cut_keeps_both_ends() -> None:
    assert cut("B1-noHN", 18) == "B1-noHN"
    assert cut("abcdefghijklmnopqrstuvwxyz", 9) == "abcde…xyz"


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, ""), (1, "A0"), (3, "A0, A1, A2"), (4, "A0, A1, A2 and 1 more"), (500, "A0, A1, A2 and 497 more")],
)
def test_of_many_names_the_first_are_listed(count: int, expected: str) -> None:
    assert listed([f"A{number}" for number in range(count)], 3) == expected
