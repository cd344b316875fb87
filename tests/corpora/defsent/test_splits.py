"""Which words are whose, and which of them a vocabulary holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.defsent.splits import mentions, normalised, pieces_of, split_sizes, split_words


def test_the_golden_filter_and_split():
    """Specified numbers: ids that are one known piece; 37 keys cut at 29 and 33."""
    ids = [[2332], [100], [7592, 2015], [], [2204], [1037]]
    assert np.flatnonzero(pieces_of(ids, 100) >= 0).tolist() == [0, 4, 5]
    assert pieces_of(ids, 100).tolist() == [2332, -1, -1, -1, 2204, 1037]
    assert split_sizes(37) == {"train": 29, "dev": 4, "test": 4}


def test_the_unknown_token_is_one_piece_and_no_word():
    """A test of length alone, which DefSent's code makes, would train on [UNK]."""
    assert pieces_of([[100], [5]], 100).tolist() == [-1, 5]
    assert pieces_of([[100]], None).tolist() == [100]  # byte-level vocabularies know every string


def test_the_papers_counts():
    """DefSent, table 1: 36,767 words of the Oxford data."""
    assert split_sizes(36_767) == {"train": 29_413, "dev": 3_677, "test": 3_677}


@settings(deadline=None)
@given(st.integers(0, 80), st.integers(0, 5))
def test_every_word_is_in_one_part(count: int, seed: int):
    keys = {f"word {at}" for at in range(count)}
    parts = split_words(keys, seed)
    assert sorted(key for part in parts.values() for key in part) == sorted(keys)
    assert {name: len(part) for name, part in parts.items()} == split_sizes(len(keys))
    assert split_words([*keys, *keys], seed) == parts


@pytest.mark.parametrize(
    ("word", "key"), [("Jug", "jug"), ("naïve", "naive"), ("Ångström", "angstrom"), ("ﬁn", "fin"), ("İ", "i")]
)
def test_case_and_accents_do_not_make_another_word(word: str, key: str):
    assert normalised(word) == key
    assert normalised(normalised(word)) == key


@pytest.mark.parametrize(
    ("word", "definition", "held"),
    [
        ("cup", "a cup of tea", True),
        ("Cup", "the world's cup", True),
        ("cup", "a cupful of tea", False),
        ("cup", "a teacup or a cup", True),
        ("cat", "concatenate", False),
        ("ice cream", "frozen ice cream", True),
    ],
)
def test_a_definition_mentions_its_word_as_a_whole_word(word: str, definition: str, held: bool):
    assert mentions(word, definition) is held
