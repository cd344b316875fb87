"""SNCSE's templates: a sentence inside a prompt, read at the prompt's mask.

tokens = in_template(tokenizer, ["A small dog runs"], VIEW, max_length=32)
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corpora.store.errors import CorpusError
from trainers.encoders.backbones import BackboneError
from trainers.encoders.marking import special_tokens
from trainers.encoders.tokens import Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from corpora.store.columns import Texts


class Template(NamedTuple):
    """What stands before and after a sentence; {mask} is the tokenizer's own mask token."""

    before: str
    after: str


VIEW = Template('This sentence : " ', ' " means {mask} .')
OTHER_VIEW = Template('This sentence of " ', ' " means {mask} .')
ENDS = frozenset(string.punctuation + "…’”»")


def in_template(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], template: Template, *, max_length: int
) -> Tokens:
    """N texts in a template as Tokens of which the mask alone is read; a text is cut, its template never.

    A text that does not end in punctuation gets " ." first.
    BackboneError for a tokenizer without a mask token, ValueError when max_length leaves no room for a text,
    CorpusError for a text that holds the mask token itself.
    Source: SNCSE, whose code leaves 22 pieces of BERT's for the text (max_length 32).
    """
    mask = mask_token(tokenizer)
    _check_unmasked(next((text for text in texts if mask in text), None), mask)
    after = template.after.format(mask=mask)
    whole = _pieces(tokenizer, [template.before + ended(text) + after for text in texts])
    begin, one, one_and_after = map(len, _pieces(tokenizer, [template.before.strip(), "a", f"a{after}"]))
    end = one_and_after - one
    head, tail = special_tokens(tokenizer)
    room = max_length - begin - end - len(head) - len(tail)
    if room < 1:
        raise ValueError(
            f"train.max_length = {max_length}\n  accepted: {max_length - room + 1} or more, a template and a piece"
        )
    ids, cut = [], 0
    for pieces in whole:
        sentence = pieces[begin : len(pieces) - end]
        cut += len(sentence) > room
        ids.append([*head, *pieces[:begin], *sentence[:room], *pieces[len(pieces) - end :], *tail])
    flat = np.concatenate([np.array(row, np.int64) for row in ids])
    read = flat == tokenizer.mask_token_id
    assert read.sum() == len(ids), "one mask token in each text"
    return Tokens(flat, np.fromiter(map(len, ids), np.int64, count=len(ids)), cut, read)


def check_sentences(tokenizer: PreTrainedTokenizerBase, sentences: Texts) -> None:
    """CorpusError for a sentence that no template takes, BackboneError for a tokenizer without a mask token."""
    mask = mask_token(tokenizer)
    _check_unmasked(sentences.first_with(mask), mask)


def _check_unmasked(held: str | None, mask: str) -> None:
    """CorpusError if there is a text that holds the mask token."""
    if held is not None:
        raise CorpusError(
            f"corpora: {held!r} holds {mask}\n  accepted: texts without it, since a template is read there"
        )


def ended(text: str) -> str:
    """The text with " ." unless its last character is punctuation."""
    bare = text.strip()
    return bare if bare and bare[-1] in ENDS else f"{bare} .".lstrip()


def mask_token(tokenizer: PreTrainedTokenizerBase) -> str:
    """BackboneError when there is none."""
    if tokenizer.mask_token is None:
        raise BackboneError(
            "backbones: the tokenizer has no mask token\n  accepted: that of a masked language model"
        )
    return str(tokenizer.mask_token)


def _pieces(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    return tokenizer(
        list(texts),
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
