"""The share of words that two sentences have in common, as sets; 1 if neither has words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def words_of(text: str) -> list[str]:
    """Lower-cased runs of letters and digits, with an apostrophe and its tail."""
    return _WORD.findall(text.lower())


def jaccard(a: str, b: str) -> float:
    """Shared words over all words. -> [0, 1]."""
    left, right = set(words_of(a)), set(words_of(b))
    return len(left & right) / len(left | right) if left | right else 1.0


def dice(a: str, b: str) -> float:
    """Twice the shared words over the words of both; never below Jaccard. -> [0, 1]."""
    left, right = set(words_of(a)), set(words_of(b))
    return 2 * len(left & right) / (len(left) + len(right)) if left | right else 1.0
