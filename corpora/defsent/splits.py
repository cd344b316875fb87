"""Splits words, each with all its definitions, into train, dev and test."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from corpora.defsent.records import SPLITS


def normalised(word: str) -> str:
    """A word without accents and capitals (NFKD, combining marks left out).

    An uncased vocabulary gives case variants one id, so the same target would be in training and test if variants
    were split separately.
    """
    apart = unicodedata.normalize("NFKD", word).lower()
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def split_sizes(keys: int) -> dict[str, int]:
    """8 : 1 : 1 of so many keys, cut at n·8//10 and n·9//10 as DefSent's code does; the last slice is the test."""
    first, second = keys * 8 // 10, keys * 9 // 10
    return dict(zip(SPLITS, (first, second - first, keys - second), strict=True))


def split_words(keys: Iterable[str], seed: int) -> dict[str, tuple[str, ...]]:
    """The distinct keys sorted, shuffled by Python's `random.Random(seed)` and cut 8 : 1 : 1.

    DefSent shuffles without a seed, so its own split cannot be reproduced.
    """
    order = sorted(set(keys))
    random.Random(seed).shuffle(order)
    parts, begin = {}, 0
    for name, size in split_sizes(len(order)).items():
        parts[name] = tuple(order[begin : begin + size])
        begin += size
    return parts


def pieces_of(token_ids: Sequence[Sequence[int]], unknown: int | None) -> np.ndarray:
    """The vocabulary entry of each word that is one entry, else -1. N lists of ids -> (N,) int64.

    A word of several pieces has no entry. Nor has an unknown word: WordPiece gives it a single [UNK],
    which passes DefSent's test of length.
    """
    return np.array([ids[0] if len(ids) == 1 and ids[0] != unknown else -1 for ids in token_ids], np.int64)


def mentions(word: str, definition: str) -> bool:
    """Whether a definition holds its own word, as a whole word in any case."""
    text, letters = definition.lower(), word.lower()
    at = text.find(letters)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(letters) : at + len(letters) + 1]
        if not any(letter.isalnum() for letter in around):
            return True
        at = text.find(letters, at + 1)
    return False
