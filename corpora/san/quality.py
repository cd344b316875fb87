"""Flags what is wrong with an aligned negative, and measures how much of its sentence it keeps.

The rule `semray` raises the first seven flags of records.FLAGS, the rule `authors` the last.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from corpora.san.records import BIT
from corpora.sources.shared_words import words_of

_LETTER = re.compile(r"[a-z]")
_PUNCTUATION = frozenset(string.punctuation)
_UNKNOWN = ("[unk]", "<unk>")
DETACHED = 0.15  # a negative that keeps less is another sentence
LEAST_VARIETY, LONG_ENOUGH = 0.5, 6  # least ratio of distinct words, for texts of at least so many words
AUTHORS_LENGTH, AUTHORS_SHARE = 50, 0.3


def kept(words: Sequence[str], rewritten: Sequence[str]) -> float:
    """Share of a sentence's words that its negative keeps, as multisets; 1 if the sentence has none."""
    if not words:
        return 1.0
    return sum((Counter(words) & Counter(rewritten)).values()) / len(words)


def flags_of(sentence: str, negative: str) -> tuple[int, float]:
    """The flags of a negative, as bits of records.FLAGS, and the share of the sentence's words it keeps."""
    x, y = words_of(sentence), words_of(negative)
    lettered = sum(bool(_LETTER.search(word)) for word in y)
    marks = sum(letter in _PUNCTUATION for letter in negative)
    share = kept(x, y)
    raised = {
        "empty": not negative.strip(),
        "punct": marks >= max(1, lettered),
        "short": lettered < max(2, len(x) / 2),
        "identical": x == y,
        "detached": share < DETACHED,
        "repeat": _repeats(y),
        "unk": any(mark in negative.lower() for mark in _UNKNOWN),
        "authors": _fails_authors(negative),
    }
    return sum(BIT[name] for name, is_raised in raised.items() if is_raised), share


def _repeats(words: Sequence[str]) -> bool:
    thrice = any(a == b == c for a, b, c in zip(words, words[1:], words[2:], strict=False))
    return thrice or (len(words) >= LONG_ENOUGH and len(set(words)) / len(words) < LEAST_VARIETY)


def _fails_authors(negative: str) -> bool:
    """The released code's only test: a short text fails when marks make up much of its marks and blanks."""
    if not negative.strip():
        return True
    if len(negative) > AUTHORS_LENGTH:
        return False
    marks, blanks = sum(letter in _PUNCTUATION for letter in negative), negative.count(" ")
    return marks + blanks > 0 and marks / (marks + blanks) >= AUTHORS_SHARE
