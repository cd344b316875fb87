"""Soft negatives: a sentence negated, its wording otherwise kept (SNCSE, section 3.2, and its released code).

There are two ways: by a dependency parse, as in SNCSE, and by lists and WordNet without a parser. Departure:
SNCSE's code removes `not` alone; here `n't` is removed too, so that "didn't" does not become "did not n't".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from corpora.san.closed_classes import DO, HAVE
from corpora.san.english_tokens import spans
from corpora.san.lexicon import Resolve
from corpora.san.splicing import cased
from corpora.sources.spacy_model import load
from corpora.sources.texts import word_set
from corpora.sources.wordnet import Wordnet

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

PARSE, RULE = 3, 4  # versions in a negator's name: raised when its sentences change
NOT = word_set("not n't n’t")
WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}  # the part of an auxiliary before n't
WHOLE |= {"ai": "is"}  # of ain't: or am, or are
TAKES_NOT = word_set("am is was were are could can will would shall should may might must")
SUPPORT = {"VBP": "do not", "VBZ": "does not", "VBD": "did not"}


def by_parse(texts: Iterable[str]) -> Iterator[str]:
    """Negate each sentence at its first auxiliary or its main verb; tokens are joined by blanks."""
    nlp = load()
    return map(negated_parse, nlp.pipe(texts))


def negated_parse(document: Doc) -> str:
    words = [word.text for word in document]
    denied = next((place for place, word in enumerate(words) if word in NOT), None)
    if denied is not None:
        if words[denied] != "not":
            words[denied - 1 : denied] = [_whole(word) for word in words[denied - 1 : denied]]
        return " ".join(words[:denied] + words[denied + 1 :])
    for word in document:
        if word.dep_ in ("aux", "auxpass", "ROOT"):
            changed = f"{word.text} not" if word.dep_ != "ROOT" else _root(word)
            if changed is None:
                break
            return " ".join((*words[: word.i], changed, *words[word.i + 1 :]))
    return f"Not {' '.join(words)}" if words else ""


def _root(word: Token) -> str | None:
    if word.text.lower() in TAKES_NOT:
        return f"{word.text} not"
    return f"{SUPPORT[word.tag_]} {word.lemma_}" if word.tag_ in SUPPORT else None


def by_rule(texts: Sequence[str], resolve: Resolve, wordnet: Wordnet) -> Iterator[str]:
    """Negate each sentence by lists and WordNet's forms; its spacing is kept."""
    return (negated_rule(text, resolve, wordnet) for text in texts)


def negated_rule(text: str, resolve: Resolve, wordnet: Wordnet) -> str:
    """Remove `not` from a sentence that has it, as in cannot; else add `not` after its first auxiliary, or
    do-support to its first verb.

    A form of have or do is an auxiliary if a verb follows. Verbs in -ing, or after `to`, a determiner or an
    adjective, are skipped. A sentence without auxiliary and verb gets `Not` before it.
    """
    places = list(spans(text))
    words = [text[a:b].lower() for a, b in places]
    tags = ["X" if word in WHOLE else resolve(word) for word in words]  # without n't, AI and CA are words
    for at, word in enumerate(words):
        if word in NOT:
            return _without(text, places, at)
        if word == "cannot":
            start, end = places[at]
            return text[:start] + cased("can", like=text[start:end]) + text[end:]
    for at, word in enumerate(words):
        if tags[at] == "AUX" and (word not in HAVE | DO or _verb_follows(tags, at)):
            return f"{text[: places[at][1]]} not{text[places[at][1] :]}"
    for at, word in enumerate(words):
        before = at and (words[at - 1] == "to" or tags[at - 1] in ("DET", "ADJ"))
        if tags[at] == "VERB" and not before and (support := _supported(word, wordnet)):
            start, end = places[at]
            return text[:start] + cased(support, like=text[start:end]) + text[end:]
    return f"Not {text}" if text.strip() else ""


def _without(text: str, places: Sequence[tuple[int, int]], at: int) -> str:
    start, end = places[at]
    head = text[:start]
    if text[start:end].lower() != "not" and at:
        before = text[places[at - 1][0] : start]
        return text[: places[at - 1][0]] + _whole(before) + text[end:]
    return (head.rstrip() + text[end:]).lstrip()


def _whole(word: str) -> str:
    """The whole auxiliary of the part before n't, in the same casing."""
    return cased(WHOLE.get(word.lower(), word), like=word)


def _verb_follows(tags: Sequence[str], at: int) -> bool:
    following = next((tag for tag in tags[at + 1 :] if tag not in ("ADV", "PRON")), "")
    return following in ("VERB", "AUX")


def _supported(word: str, wordnet: Wordnet) -> str | None:
    lemma = next(iter(wordnet.bases(word, "v")), None)
    if lemma is None or (word != lemma and word.endswith("ing")):
        return None
    past = word.endswith("ed") or word in wordnet.exceptions["v"]
    support = "do" if word == lemma else "does" if word.endswith("s") else "did" if past else "do"
    return f"{support} not {lemma}"
