"""Texts small enough to count by hand, with a lexicon of their own."""

from __future__ import annotations

from corpora.san.cloze import Cloze, count
from corpora.san.lexicon import by_list_or_form

TAGS = {"cat": "NOUN", "dog": "NOUN", "mat": "NOUN", "sat": "VERB", "ran": "VERB", "red": "ADJ", "big": "ADJ"}
TEXTS = (
    *("the cat sat on the mat .", "the dog ran on the mat .", "the big dog sat .", "the red cat ran ."),
    *("a big dog ran on the red mat .", "a red cat sat on a mat ."),
)


def resolve(word: str) -> str:
    return by_list_or_form(word) or TAGS.get(word, "X")


def small_cloze() -> Cloze:
    return Cloze.of(count(TEXTS, source="six sentences"), resolve)
