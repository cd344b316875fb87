"""Golden numbers of tokens, overlap, hard_lex and the surface label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.difficulty.surface import (
    complexity,
    hard_lex,
    overlap,
    per_sentence,
    surface_complexity,
    surface_counts,
    tokens,
)

A = ("A cat sat.", "A cat sat.", "", "a-b c")
B = ("The cat sat", "Dogs don't run!", "...", "A B c")
GOLD = np.array([1.0, 0.2, 0.0, 0.6])


def test_hard_lex_golden() -> None:
    assert [overlap(*pair) for pair in zip(A, B, strict=True)] == pytest.approx([0.5, 0.0, 1.0, 1.0])
    values = hard_lex(A, B, GOLD)
    np.testing.assert_allclose(values, [0.5, 0.2, 1.0, 0.4], atol=1e-9)
    expected = {
        "A cat sat.": 0.35,
        "The cat sat": 0.5,
        "Dogs don't run!": 0.2,
        "": 1.0,
        "...": 1.0,
        "a-b c": 0.4,
        "A B c": 0.4,
    }
    assert per_sentence(A, B, values) == pytest.approx(expected)


def test_a_pair_of_one_sentence_counts_once_for_it() -> None:
    assert per_sentence(["s", "s"], ["s", "t"], np.array([1.0, 0.0])) == {"s": 0.5, "t": 0.0}


def test_surface_label_golden() -> None:
    first, second = "When the rain stopped, they walked to the river and waited.", "No."
    assert surface_counts(first) == {
        "tokens": 11,
        "chars": 59,
        "punct": 2,
        "coord": 1,
        "subord": 1,
        "clauses": 2,
        "args": 4,
    }
    assert surface_counts(second) == {
        "tokens": 1,
        "chars": 3,
        "punct": 1,
        "coord": 0,
        "subord": 0,
        "clauses": 0,
        "args": 0,
    }
    np.testing.assert_allclose(surface_complexity([first, second]), [0.3053333333, 0.02316666667], atol=1e-9)


def test_tokens_keep_inner_apostrophes_and_letters_of_any_script() -> None:
    assert tokens("Don\u2019t stop: 3,5 caf\u00e9s_two!") == ["don't", "stop", "3", "5", "caf\u00e9s", "two"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_overlap_is_symmetric_and_one_on_equals(a: str, b: str) -> None:
    assert overlap(a, b) == overlap(b, a)
    assert overlap(a, a) == 1.0
    assert 0.0 <= overlap(a, b) <= 1.0


@given(st.text(max_size=60))
def test_the_surface_label_stays_between_0_and_1(text: str) -> None:
    assert 0.0 <= complexity(surface_counts(text)) <= 1.0
