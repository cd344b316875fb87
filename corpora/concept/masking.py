"""Removes a term from its definition, so that a shared word does not give a pair away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from corpora.sources.inflection import irregular_forms, variants
from corpora.sources.texts import norm
from corpora.sources.wordnet import Synset, Wordnet

_PARTS = re.compile(r"[\s_-]+")
_JOINTS = ("of", "in", "at", "to", "by", "de")  # "mother in law" is inflected in its first word
_EMPTY_BRACKETS = re.compile(r"\(\s*\)")
_SPACE_BEFORE = re.compile(r"\s+(?=[,;:.)])")

Irregular = Mapping[str, Mapping[str, frozenset[str]]]


def irregular_of(lexicon: Wordnet) -> Irregular:
    """pos -> base -> irregular forms."""
    return {pos: irregular_forms(listed) for pos, listed in lexicon.exceptions.items()}


def forms_of(lemma: str, pos: str, irregular: Irregular) -> set[str]:
    """Every spelling of a lemma to look for, with single spaces between its words; capitals are kept.

    The last word of a noun or adjective is inflected, the first of a verb, also the first of "X of Y" nouns.
    """
    words = [word for word in _PARTS.split(lemma) if word]
    places = {0 if pos == "v" else len(words) - 1}
    if pos == "n" and len(words) > 2 and words[1].lower() in _JOINTS:
        places.add(0)
    forms = {" ".join(words)}
    for place in places:
        inflections = variants(words[place], pos) | _like(words[place], irregular[pos])
        forms |= {" ".join([*words[:place], form, *words[place + 1 :]]) for form in inflections}
    whole = irregular[pos].get("_".join(words).lower(), frozenset()) | irregular[pos].get(
        lemma.lower(), frozenset()
    )
    return forms | {" ".join(_PARTS.split(form)) for form in whole}


def _like(word: str, irregular: Mapping[str, frozenset[str]]) -> set[str]:
    """Irregular forms of a word, with its capitals and with single spaces."""
    forms = {" ".join(_PARTS.split(form)) for form in irregular.get(word.lower(), ())}
    return {form[:1].upper() + form[1:] for form in forms} if word[:1].isupper() else forms


def pattern_of(lemmas: Iterable[str], pos: str, irregular: Irregular) -> re.Pattern[str]:
    """One pattern for all spellings of these lemmas, longest first, whole words only.

    Case is ignored unless the lemma begins with a capital: the month May does not match the modal may. Space,
    hyphen and underscore match one another; a possessive ending belongs to its word.
    """
    spellings = {(form, lemma[:1].isupper()) for lemma in lemmas for form in forms_of(lemma, pos, irregular)}
    ordered = sorted(spellings, key=lambda spelling: (-len(spelling[0]), spelling))
    choices = "|".join(_choice(form, strict) for form, strict in ordered)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{choices})(?:'s|s'|(?<=s)')?(?![A-Za-z0-9])")


def _choice(form: str, strict: bool) -> str:
    text = r"[\s_-]+".join(re.escape(word) for word in form.split(" "))
    return text if strict else f"(?i:{text})"


def erase(definition: str, pattern: re.Pattern[str], mask_token: str | None = None) -> str:
    """The definition without the matches, tidied; unchanged if nothing matches.

    Deleting can bring the parts of a term together, so it is repeated until nothing matches. With
    `mask_token` the matches are replaced instead, in one pass: the token itself may be a term.
    """
    if mask_token:
        return _tidied(pattern.sub(lambda _: mask_token, definition)) if pattern.search(definition) else definition
    while pattern.search(definition):
        definition = _tidied(pattern.sub("", definition))
    return definition


def _tidied(text: str) -> str:
    """Without empty brackets, spaces before closing punctuation, double spaces and outer `,;:`."""
    text = _SPACE_BEFORE.sub("", _EMPTY_BRACKETS.sub("", text))
    return " ".join(text.split()).strip(",;: ")


def masker(
    lexicon: Wordnet, *, derivations: bool = False, mask_token: str | None = None
) -> Callable[[Synset, Iterable[str]], str]:
    """A function (synset, terms) -> its definition with these terms masked.

    derivations: also mask the words the terms are derivationally related to (`deanship` then hides `dean`).
    """
    irregular = irregular_of(lexicon)

    def masked(synset: Synset, terms: Iterable[str]) -> str:
        terms = tuple(terms)
        related = _related(synset, terms, lexicon) if derivations else []
        text = synset.definition
        for pos, lemmas in [*related, (synset.pos, terms)]:
            if _may_hold(text, lemmas, pos, irregular):
                text = erase(text, pattern_of(lemmas, pos, irregular), mask_token)
        return text

    return masked


def word_masker(lexicon: Wordnet, *, mask_token: str | None = None) -> Callable[[str, Iterable[str], str], str]:
    """A function (definition, words, part of speech) -> the definition with every form of these words masked."""
    irregular = irregular_of(lexicon)

    def masked(definition: str, words: Iterable[str], pos: str) -> str:
        words = tuple(words)
        if not _may_hold(definition, words, pos, irregular):
            return definition
        return erase(definition, pattern_of(words, pos, irregular), mask_token)

    return masked


def _related(synset: Synset, terms: tuple[str, ...], lexicon: Wordnet) -> list[tuple[str, tuple[str, ...]]]:
    """(pos, words) at the other end of each derivational pointer of the terms."""
    pointers = (pointer for pointer in synset.derived if synset.lemmas[pointer.word] in terms)
    targets = ((lexicon.synsets[pointer.target], pointer.target_word) for pointer in pointers)
    return [(target.pos, (target.lemmas[word],)) for target, word in targets]


def _may_hold(definition: str, lemmas: Iterable[str], pos: str, irregular: Irregular) -> bool:
    """A cheap test, as 19 of 20 definitions have none of their terms and need no compiled pattern."""
    folded = norm(definition)
    return any(form.lower() in folded for lemma in lemmas for form in forms_of(lemma, pos, irregular))
