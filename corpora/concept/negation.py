"""Hard negatives that deny a definition with one token (CONCEPT, appendix G, "lexical negation").

The paper inserts *not* at the first finite verb or copula. Four definitions in five have no finite verb, so a
prefixed *not* is the last resort; the kind of edit is reported because it is a cue a model can learn.
"""

from __future__ import annotations

import re
from functools import cache

from corpora.sources.english import AUXILIARIES, DETERMINERS, PREPOSITIONS
from corpora.sources.texts import WORD, word_set
from corpora.sources.wordnet import Wordnet

_ALSO_NOUNS = word_set("may might can will must does")  # a can, the will, two does
# Before a modal `that`, `which` and `what` are relatives (that can fly), and pronouns may stand alone.
_BEFORE_NOUNS = DETERMINERS - word_set("that which what both all none whatever whichever")
_RELATIVES = word_set("who that which")


class Negation:
    """Negates definitions; the lexicon says which words are verbs."""

    def __init__(self, lexicon: Wordnet) -> None:
        self._lexicon = lexicon
        self._is_verb = cache(lambda word: bool(lexicon.bases(word, "v")))
        self._is_finite = cache(self._finite)

    def edit(self, definition: str) -> tuple[str, str]:
        """(denied definition, kind): "toggle" removes a *not*, "aux", "lexical" and "prefix" add one."""
        tokens = list(WORD.finditer(definition))
        words = [token.group().lower() for token in tokens]
        if "not" in words:
            token = tokens[words.index("not")]
            rest = definition[: token.start()] + definition[token.end() :].lstrip()
            return rest.strip(), "toggle"
        for place, word in enumerate(words):
            if _is_auxiliary(words, place):
                return _inserted(definition, tokens[place].end(), " not"), "aux"
            if word not in AUXILIARIES and self._is_relative_verb(definition, tokens, words, place):
                return _inserted(definition, tokens[place].start(), "not "), "lexical"
        return f"not {definition}", "prefix"

    def _is_relative_verb(
        self, definition: str, tokens: list[re.Match[str]], words: list[str], place: int
    ) -> bool:
        """A finite verb right after who/that/which; one -ly adverb may stand between, a comma may not."""
        relative = place - 1
        if relative >= 1 and words[relative].endswith("ly"):
            relative -= 1
        if relative < 0 or words[relative] not in _RELATIVES or not self._is_verb(words[place]):
            return False
        if definition[tokens[relative].end() : tokens[place].start()].count(","):
            return False
        if relative > 0 and words[relative - 1] in PREPOSITIONS:
            return False
        return words[relative] == "who" or self._is_finite(words[place])

    def _finite(self, word: str) -> bool:
        """Inflected, irregular, or at least not also a noun; -ing forms are not finite."""
        lexicon = self._lexicon
        bases = lexicon.bases(word, "v")
        if word.endswith("ing") and word not in bases:
            return False
        return word not in bases or word in lexicon.exceptions["v"] or not lexicon.bases(word, "n")


def _is_auxiliary(words: list[str], place: int) -> bool:
    before = words[place - 1] if place else ""
    if words[place] not in AUXILIARIES or before == "to":
        return False
    return not (words[place] in _ALSO_NOUNS and before in _BEFORE_NOUNS)


def _inserted(text: str, place: int, word: str) -> str:
    return text[:place] + word + text[place:]
