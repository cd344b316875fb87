"""A sense of a dictionary other than WordNet: a word, one definition, and other forms of the word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from corpora.sources.texts import norm

Word = tuple[str, str, str]  # dictionary, surface, part of speech
LEAST_WORDS, MOST_WORDS = 3, 60
_POINTER = re.compile(r"(?:See|Same as|Cf\.|Compare)\b")


@dataclass(frozen=True, slots=True)
class DictionarySense:
    """One definition of one word. concept names it among all senses of all sources and ends with its part of
    speech, "-n", "-v", "-a" or "-r". forms: other spellings of the word that give it away. synonyms: of this
    sense."""

    concept: str
    term: str
    definition: str
    forms: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()

    @property
    def pos(self) -> str:
        return self.concept[-1]

    @property
    def word(self) -> Word:
        """The word of this sense, which may have other senses in its dictionary."""
        return self.concept.partition(":")[0], norm(self.term), self.pos


def says_enough(definition: str) -> bool:
    """Whether a definition is usable: 3 to 60 words, legible, and no mere pointer to another entry.

    GCIDE's typists wrote a question mark for illegible letters; Wiktionary's extraction leaves template text that
    it could not expand.
    """
    return (
        LEAST_WORDS <= len(definition.split()) <= MOST_WORDS
        and definition[:1].isalpha()
        and "?" not in definition
        and ":Template:" not in definition
        and not _POINTER.match(definition)
    )
