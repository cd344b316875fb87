"""Hard negatives that change one word of a definition to its opposite (CONCEPT, appendix G, "antonym flip").

The paper names a WordNet antonymy lookup and leaves the choice of the word open; the choice here is the first
word whose dominant reading has an antonym, so that the edit is the smallest possible.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from corpora.concept.masking import irregular_of
from corpora.sources.english import FUNCTION_WORDS, LIGHT_WORDS
from corpora.sources.inflection import article, inflected
from corpora.sources.texts import WORD
from corpora.sources.wordnet import Pointer, Synset, Wordnet

FIRST_SENSES = 3
_POS_ORDER = "nvar"
_ONE_WORD = re.compile(r"[A-Za-z]+")
_ARTICLE_BEFORE = re.compile(r"\b([Aa]n?)\s+$")


class Flip(NamedTuple):
    """What a token may be changed to: the antonym in the token's inflection."""

    base: str
    text: str


class Antonyms:
    """Antonym flips over one lexicon; remembers what it has looked up, since few words make all definitions."""

    def __init__(self, lexicon: Wordnet) -> None:
        self._lexicon = lexicon
        self._irregular = irregular_of(lexicon)
        self._reading = cache(self._dominant)
        self._flip = cache(self._flipped)

    def edit(self, definition: str) -> tuple[str, str] | None:
        """(definition with one word turned to its opposite, "direct" or "indirect"), or None without any.

        Indirect: a satellite adjective has no antonym of its own and borrows that of the adjective it
        clusters around; tried only when no token has a direct one.
        """
        tokens = list(WORD.finditer(definition))
        present = {token.group().lower() for token in tokens}
        for indirect in (False, True):
            for token in tokens:
                flip = self._flip(token.group().lower(), indirect) if self._is_content(token) else None
                if flip and flip.base not in present and flip.text.lower() not in present:
                    edited = replace_word(definition, token.start(), token.end(), flip.text)
                    return edited, "indirect" if indirect else "direct"
        return None

    def _is_content(self, token: re.Match[str]) -> bool:
        word = token.group()
        if len(word) < 3 or word.lower() in FUNCTION_WORDS or word.lower() in LIGHT_WORDS:
            return False
        return token.start() == 0 or not word[0].isupper()

    def _dominant(self, word: str) -> tuple[str, str] | None:
        """(pos, lemma) a word is read as: most tagged, then the exact form, then n v a r, then the alphabet."""
        readings = [(pos, base) for pos in _POS_ORDER for base in self._lexicon.bases(word, pos)]
        counts = self._lexicon.counts
        return min(
            readings,
            key=lambda r: (-counts.get((r[1], r[0]), 0), r[1] != word, _POS_ORDER.index(r[0]), r[1]),
            default=None,
        )

    def _flipped(self, word: str, indirect: bool) -> Flip | None:
        reading = self._reading(word)
        if reading is None or (indirect and reading[0] != "a"):
            return None
        pos, lemma = reading
        for identifier in self._lexicon.senses[lemma, pos][:FIRST_SENSES]:
            synset = self._lexicon.synsets[identifier]
            bases = self._of_head(synset) if indirect else self._of_lemma(synset, lemma)
            if bases:
                text = self._in_form_of(word, lemma, bases[0], pos)
                return Flip(bases[0], text) if text else None
        return None

    def _of_lemma(self, synset: Synset, lemma: str) -> list[str]:
        own = [place for place, word in enumerate(synset.lemmas) if word.lower() == lemma]
        return self._words([pointer for pointer in synset.antonyms if pointer.word in own])

    def _of_head(self, synset: Synset) -> list[str]:
        return self._words(self._lexicon.synsets[synset.head].antonyms) if synset.head else []

    def _words(self, pointers: list[Pointer] | tuple[Pointer, ...]) -> list[str]:
        """The single words these antonym pointers lead to, most tagged first, then by the alphabet."""
        targets = ((self._lexicon.synsets[pointer.target], pointer.target_word) for pointer in pointers)
        found = [(-synset.counts[place], synset.lemmas[place]) for synset, place in targets]
        return [word for _, word in sorted(found) if _ONE_WORD.fullmatch(word)]

    def _in_form_of(self, word: str, lemma: str, antonym: str, pos: str) -> str | None:
        """The antonym inflected as `word` is inflected from `lemma`."""
        if word == lemma:
            return antonym
        irregular = self._irregular[pos].get(antonym, frozenset())
        if pos == "n":
            return inflected(antonym, "plural", irregular)
        if pos == "v":
            form = "ing" if word.endswith("ing") else "s" if word.endswith("s") else "past"
        else:
            form = "est" if word.endswith("st") else "er"
        return inflected(antonym, form, irregular)


def replace_word(text: str, start: int, end: int, word: str) -> str:
    """text[start:end] replaced by a word, with its capital kept and a preceding a/an made to agree."""
    before = text[:start]
    if text[start].isupper():
        word = word[:1].upper() + word[1:]
    found = _ARTICLE_BEFORE.search(before)
    if found:
        agreeing = article(word)
        agreeing = agreeing.capitalize() if found.group(1)[0] == "A" else agreeing
        before = before[: found.start(1)] + agreeing + before[found.end(1) :]
    return before + word + text[end:]
