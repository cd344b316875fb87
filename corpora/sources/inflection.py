"""English spelling of inflected forms, to find a word in a definition and to replace it by an antonym.

`variants` lists every possible spelling of a word, as a search may find too much; `inflected` gives the one right
form or None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_CVC = re.compile(r"(?:^|[^aeiou]|qu)[aeiou][bcdfghjklmnpqrstvz]$")
_SYLLABLE = re.compile(r"[aeiouy]+")
_SILENT_E = re.compile(r"(?<!l)e$")
_VOWEL_BY_SPELLING_ONLY = re.compile(r"(?:uni(?!n|m)|us[eu]|eu|one|once|ubi|ut[ei])")
_SILENT_H = re.compile(r"(?:hour|honest|hono|heir)")


def variants(word: str, pos: str) -> set[str]:
    """The word and its regular inflections as a noun, verb, adjective or adverb ("n", "v", "a", "r").

    Generous where spelling depends on sound: a final consonant is doubled and not, f gives -fs and -ves.
    """
    low = word.lower()
    endings = {"n": ("s",), "v": ("s", "ed", "ing")}.get(pos, ("er", "est"))
    forms = {word, *(spelled(word, end) for end in endings)}
    if pos in "nv" and low.endswith("o"):
        forms.add(word + "es")
    if pos == "n" and low.endswith("f"):
        forms.add(word[:-1] + "ves")
    if pos == "n" and low.endswith("fe"):
        forms.add(word[:-2] + "ves")
    if pos != "n" and _CVC.search(low):
        forms |= {word + word[-1] + end for end in endings if end != "s"}
    return forms


def spelled(word: str, end: str) -> str:
    """word + "s", "ed", "ing", "er" or "est" by the spelling rules that need no ear."""
    low = word.lower()
    if end == "s" and _SIBILANT.search(low):
        return word + "es"
    if end == "ing":
        if low.endswith("ie"):
            return word[:-2] + "ying"
        return word[:-1] + "ing" if re.search(r"[^eoy]e$", low) else word + "ing"
    if _CONSONANT_Y.search(low):
        return word[:-1] + ("ies" if end == "s" else "i" + end)
    return word + (end[1:] if end != "s" and low.endswith("e") else end)


def inflected(base: str, form: str, irregular: frozenset[str]) -> str | None:
    """The `form` ("plural", "s", "ing", "past", "er" or "est") of a base; None if that is not known.

    irregular: every irregular form listed for the base in its part of speech. A verb with two of them (took,
    taken) has a past and a participle that the listing does not distinguish.
    """
    listed = [other for other in irregular if _is_of(other, form)]
    if listed:
        return listed[0] if len(listed) == 1 else None
    if form in ("er", "est") and _is_long(base):
        return ("more " if form == "er" else "most ") + base
    end = {"plural": "s", "past": "ed"}.get(form, form)
    if end != "s" and _doubles(base):
        return base + base[-1] + end
    return base + "es" if end == "s" and re.search(r"[^aeiou]o$", base) else spelled(base, end)


def _is_of(irregular: str, form: str) -> bool:
    if form == "plural":
        return True
    if form in ("s", "ing"):
        return irregular.endswith(form)
    if form == "past":
        return not irregular.endswith(("s", "ing"))
    return irregular.endswith("st") == (form == "est")


def _doubles(base: str) -> bool:
    """Whether the final consonant doubles, as after one stressed short vowel; known for one syllable only."""
    return bool(_CVC.search(base)) and len(_SYLLABLE.findall(base)) == 1


def _is_long(adjective: str) -> bool:
    """Whether it compares with more and most: over two syllables, or two not ending in -y, -le, -ow, -er."""
    syllables = len(_SYLLABLE.findall(_SILENT_E.sub("", adjective)))
    return syllables > 2 or (syllables == 2 and not adjective.endswith(("y", "le", "ow", "er")))


def article(following: str) -> str:
    """ "an" before a vowel sound, else "a"."""
    low = following.lower()
    vowel = low[:1] in tuple("aeiou") and not _VOWEL_BY_SPELLING_ONLY.match(low)
    return "an" if vowel or _SILENT_H.match(low) else "a"


def irregular_forms(exceptions: Mapping[str, tuple[str, ...]]) -> dict[str, frozenset[str]]:
    """Base -> its irregular forms, from an exception list form -> bases."""
    forms: dict[str, set[str]] = {}
    for form, bases in exceptions.items():
        for base in bases:
            forms.setdefault(base, set()).add(form)
    return {base: frozenset(listed) for base, listed in forms.items()}
