"""Tags each vocabulary entry with one part of speech, by closed lists, SemCor's counts, WordNet and endings.

    tags = tags_of(words, resolver(wordnet=..., counts=...), initial=...)

This is the static tagging of the SAN paper (appendix A), which ran a tagger on isolated entries. Departure: steps
of which the first that knows a word decides. A tagger may replace the last three.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from corpora.san.closed_classes import POS_OF
from corpora.san.importance import CODE
from corpora.sources.wordnet import Wordnet

Resolve = Callable[[str], str]  # a lower-case word -> its Universal POS

_NUMBER = re.compile(r"[+-]?\d[\d.,/:%-]*(?:st|nd|rd|th|'?s)?")
_SUFFIXES = {"ly": "ADV", "ing": "VERB", "ed": "VERB"} | dict.fromkeys(("ous", "ful", "ive", "able"), "ADJ")
_WORDNET_POS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
SENSE_WEIGHT, IDENTITY_WEIGHT = 0.1, 0.05
SEEN_ENOUGH = 2  # occurrences in SemCor with which a word's counts decide
_PENN = {
    **dict.fromkeys(("NN", "NNS"), "NOUN"),
    **dict.fromkeys(("NNP", "NNPS", "NP", "NPS"), "PROPN"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "ADJ"),
    **dict.fromkeys(("RB", "RBR", "RBS", "WRB"), "ADV"),
    **dict.fromkeys(("PRP", "PRP$", "PP", "PP$", "WP", "WP$", "EX"), "PRON"),
    **dict.fromkeys(("DT", "PDT", "WDT"), "DET"),
    **{
        "MD": "AUX",
        "IN": "ADP",
        "RP": "ADP",
        "TO": "PART",
        "POS": "PART",
        "CC": "CCONJ",
        "CD": "NUM",
        "UH": "INTJ",
    },
    **{".": "PUNCT", "SYM": "SYM", "FW": "X", "LS": "X"},
}


def universal(penn: str, word: str) -> str:
    """The Universal POS of a Penn tag on a lower-case word.

    Closed lists decide whether a verb is an auxiliary and `not` a particle.
    """
    if penn.startswith("RB") and POS_OF.get(word) == "PART":
        return "PART"
    if penn.startswith("VB") or penn == "MD":
        return "AUX" if POS_OF.get(word) == "AUX" else "VERB"
    if penn in ("IN", "WRB") and (word == "that" or POS_OF.get(word) == "SCONJ"):
        return "SCONJ"
    return _PENN.get(penn, "X")


def counts_of(tagged: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """Counts of each lower-case word with each Universal POS, from (word, Penn tag)."""
    counts: dict[str, Counter[str]] = {}
    for word, penn in tagged:
        low = word.lower()
        counts.setdefault(low, Counter())[universal(penn, low)] += 1
    return counts


def resolver(*, wordnet: Wordnet | None = None, counts: Mapping[str, Counter[str]] | None = None) -> Resolve:
    """A function that tags a word by lists, form, SemCor's counts, WordNet or ending: the first that knows it.

    Without counts or WordNet that step is left out.
    """

    @lru_cache(maxsize=1 << 20)
    def resolve(word: str) -> str:
        seen = (counts or {}).get(word, Counter())
        if (known := by_list_or_form(word)) is not None:
            return known
        if seen.total() >= SEEN_ENOUGH:
            return max(seen, key=lambda pos: (seen[pos], -CODE[pos]))
        return (by_wordnet(word, wordnet) if wordnet else None) or by_ending(word)

    return resolve


def by_list_or_form(word: str) -> str | None:
    """Closed classes; digits NUM; marks alone PUNCT, symbols alone SYM; else None."""
    if word in POS_OF:
        return POS_OF[word]
    if _NUMBER.fullmatch(word):
        return "NUM"
    classes = {unicodedata.category(letter)[0] for letter in word}
    return {"P": "PUNCT", "S": "SYM"}.get(classes.pop()) if len(classes) == 1 else None


def by_wordnet(word: str, wordnet: Wordnet) -> str | None:
    """The part of speech in which this word's lemma is tagged most often; None if WordNet lacks the word.

    NOUN becomes PROPN when every synset spells the lemma with a capital.
    """
    best, weight = None, 0.0
    for pos in _WORDNET_POS:
        for lemma in wordnet.bases(word, pos)[:1]:
            senses = len(wordnet.senses[lemma, pos])
            here = wordnet.counts.get((lemma, pos), 0) + SENSE_WEIGHT * senses + IDENTITY_WEIGHT * (lemma == word)
            if here > weight:
                best, weight = (pos, lemma), here
    if best is None:
        return None
    return "PROPN" if best[0] == "n" and _is_name(best[1], wordnet) else _WORDNET_POS[best[0]]


def _is_name(lemma: str, wordnet: Wordnet) -> bool:
    spellings = (
        spelling
        for synset in wordnet.senses[lemma, "n"]
        for spelling in wordnet.synsets[synset].lemmas
        if spelling.lower() == lemma
    )
    return all(spelling[:1].isupper() for spelling in spellings)


def by_ending(word: str) -> str:
    for ending, pos in _SUFFIXES.items():
        if word.endswith(ending) and len(word) > len(ending):
            return pos
    return "PROPN" if word.isascii() and word.isalpha() and len(word) > 2 else "X"


def tags_of(
    words: Sequence[str], resolve: Resolve, *, initial: Sequence[bool] | np.ndarray | None = None
) -> np.ndarray:
    """The code of POS of each vocabulary entry, (V,) uint8.

    words: entries without `##` or `Ġ`. initial: whether an entry begins a word; others are X, as is `[unused…]`.
    Other entries in brackets, `[…]` or `<…>`, are SPECIAL.
    """
    starts = [True] * len(words) if initial is None else initial
    return np.array(
        [CODE[_entry(word, resolve) if start else "X"] for word, start in zip(words, starts, strict=True)],
        np.uint8,
    )


def _entry(word: str, resolve: Resolve) -> str:
    if len(word) > 2 and word[0] + word[-1] in ("[]", "<>"):
        return "X" if word.startswith("[unused") else "SPECIAL"
    return resolve(word.lower())
