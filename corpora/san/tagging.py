"""Dynamic tagging: every sentence tagged by spaCy's model, the tag copied to all pieces of a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from corpora.san.importance import CODE, SPECIAL
from corpora.san.lexicon import Resolve, by_list_or_form
from corpora.san.mask_predict import TaggedTokens
from corpora.sources.spacy_model import load


def tagged(texts: Sequence[str], tokens: Sequence[TaggedTokens]) -> Iterator[TaggedTokens]:
    """The tokens with the tags of the words they lie in. SPECIAL tokens of the vocabulary stay SPECIAL."""
    nlp = load()
    with nlp.select_pipes(disable=["parser", "lemmatizer"]):
        for document, each in zip(nlp.pipe(texts), tokens, strict=True):
            starts = np.array([word.idx for word in document])
            tags = np.array([CODE.get(word.pos_, CODE["X"]) for word in document], np.uint8)
            within = np.searchsorted(starts, each.start, side="right") - 1 if len(tags) else each.start
            read = tags[within] if len(tags) else each.tags
            yield each._replace(tags=np.where(each.tags == SPECIAL, np.uint8(SPECIAL), read))


def by_isolated_word() -> Resolve:
    """A function that tags a word out of context, as the SAN authors: by lists and form, then spaCy's model."""
    nlp = load()

    @cache
    def resolve(word: str) -> str:
        if (known := by_list_or_form(word)) is not None:
            return known
        document = nlp(word)
        return document[0].pos_ if len(document) and document[0].pos_ in CODE else "X"

    return resolve
