"""SemCor's sentences and the words annotated in them, from the tag files or from NLTK's XML.

    sentences = list(read(locate().texts))      # 37,176 in file order

The tag files are no valid XML: their attributes have no quotes and `&` is not escaped. Sense keys are those
of WordNet 3.0.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from corpora.store.errors import CorpusError

_ELEMENT = re.compile(r"<(s|wf|punc)\b([^>]*)>(?:([^<]*)</\1>)?")
_ATTRIBUTE = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s"]+))')


class Word(NamedTuple):
    """An annotated word: its place in the sentence, its lemma and its sense keys.

    Annotators gave some words several senses. The key of a sense that was lost on the way from WordNet 1.6 to 3.0
    (8,096 words have such a "sense 0") resolves to nothing. proper: a named entity or tagged as a proper noun.
    """

    place: int
    lemma: str
    keys: tuple[str, ...]
    proper: bool


class Sentence(NamedTuple):
    """A sentence by file and number: its tokens (words and punctuation) and those that carry an annotation."""

    file: str
    number: str
    tokens: tuple[str, ...]
    words: tuple[Word, ...]


def read(texts: Mapping[str, bytes]) -> Iterator[Sentence]:
    """The sentences of the files (name -> content), in the order of the mapping. CorpusError on a broken file."""
    for name, content in texts.items():
        yield from _sentences(name, content)


def tagged_words(texts: Mapping[str, bytes]) -> Iterator[list[tuple[str, str]]]:
    """(token, Penn tag) of each sentence's words, annotated or not, and of its marks, whose tag is ".".

    Expressions of several words are left out, and so are words with the tag of an expression around them (`ot=`).
    Of two tags of a word (`VB|NN`) the first counts.
    """
    for content in texts.values():
        text = content.decode("latin-1")
        unescape = _unescaping(text)
        sentence: list[tuple[str, str]] = []
        for kind, written, token in _ELEMENT.findall(text):
            attributes = _attributes(written)
            if kind == "s" and sentence:
                yield sentence
                sentence = []
            elif kind == "punc":
                sentence.append((unescape(token), "."))
            elif "pos" in attributes and "ot" not in attributes and "_" not in token:
                sentence.append((unescape(token), attributes["pos"].partition("|")[0]))
        yield sentence


def _sentences(name: str, content: bytes) -> Iterator[Sentence]:
    text = content.decode("latin-1")
    unescape = _unescaping(text)
    file = name.rpartition("/")[2]
    number = ""
    tokens: list[str] = []
    annotated: list[Word] = []
    for kind, attributes, token in _ELEMENT.findall(text):
        if kind == "s":
            if number:
                yield Sentence(file, number, tuple(tokens), tuple(annotated))
            tokens, annotated = [], []
            number = _attributes(attributes).get("snum", "")
            if not number:
                raise CorpusError(f"corpora: semcor: {name}: a sentence without number (snum)")
        else:
            if not number:
                raise CorpusError(f"corpora: semcor: {name}: {token!r} stands outside every sentence")
            if "wnsn" in attributes or "pn=" in attributes:
                annotated.append(_word(len(tokens), _attributes(attributes)))
            tokens.append(unescape(token))
    if not number:
        raise CorpusError(f"corpora: semcor: {name}: no sentence found")
    yield Sentence(file, number, tuple(tokens), tuple(annotated))


def _unescaping(text: str) -> Callable[[str], str]:
    """How a token of this file is read: XML, which alone has quotes around attributes, escapes `&`."""
    return html.unescape if 'snum="' in text else str


def _attributes(written: str) -> dict[str, str]:
    return {name: quoted or bare for name, quoted, bare in _ATTRIBUTE.findall(written)}


def _word(place: int, attributes: Mapping[str, str]) -> Word:
    lemma = attributes.get("lemma", "")
    keys = tuple(f"{lemma}%{key}" for key in attributes.get("lexsn", "").split(";") if key)
    return Word(place, lemma, keys, "pn" in attributes or attributes.get("pos") == "NNP")
