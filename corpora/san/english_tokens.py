"""English words and marks of a text, with their places: the tokens of the count-based generator."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""
    \d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s)?(?!\w)         # 1,000.5  20th  1980s
  | [^\W\d_]+?(?=n['’]t\b) | n['’]t\b                  # do|n't
  | ['’](?:s|re|ve|ll|d|m)\b                           # she|'s
  | [^\W_]+                                            # a word, a mixture of letters and digits
  | (?:\.\.\.|--) | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """First and last + 1 character of each token, in order."""
    return (found.span() for found in TOKEN.finditer(text))


def tokens_of(text: str) -> list[str]:
    """The tokens in lower case."""
    return [token.lower() for token in TOKEN.findall(text)]
