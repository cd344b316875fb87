"""Prepares words in their sentences for a backbone: tags the word, and cuts a text that is too long around it.

tokens_around(tokenizer, [mark(occurrence)], max_length=128)     # "The jury <t> said </t> Friday ..."
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from trainers.encoders.tokens import Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from corpora.sources.occurrences import Occurrence

Markers = Literal["plain", "added"]
TAGS = ("<t>", "</t>")


class Spanned(NamedTuple):
    """A text and the part of it, text[begin:end], that is never cut."""

    text: str
    begin: int
    end: int


def mark(occurrence: Occurrence) -> Spanned:
    """The sentence with its target as `<t> target </t>`, set off by single blanks; the span holds both tags.

    Source: CALE, section 4; the public XL-LEXEME code hands the same literal strings to its tokenizer.
    """
    left, right = occurrence.text[: occurrence.start].rstrip(), occurrence.text[occurrence.end :].lstrip()
    tagged = f"{TAGS[0]} {occurrence.target} {TAGS[1]}"
    begin = len(left) + 1 if left else 0
    return Spanned(" ".join(filter(None, (left, tagged, right))), begin, begin + len(tagged))


def bare(occurrence: Occurrence) -> Spanned:
    """The unmarked sentence; the span is the target."""
    return Spanned(occurrence.text, occurrence.start, occurrence.end)


def tokens_around(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Spanned], *, max_length: int, prefix: str = ""
) -> Tokens:
    """N texts as Tokens with special tokens; `read` marks the pieces of each span.

    Each text is tokenised as one string, and its span is found by character offsets, whatever the tokenizer does
    at blanks. A text that is too long is cut around its span: of the `room` left for context, the left context
    keeps its last min(left, max(room // 2, room - right)) pieces, and the right context gets the rest. A prefix is
    never cut. Raises ValueError if a span alone is too long.
    """
    head, tail = special_tokens(tokenizer)
    encoded = tokenizer(
        [prefix + text for text, _, _ in texts],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    ids, read, truncated = [], [], 0
    for text, pieces, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        ends = [end for _, end in offsets]
        first = bisect_right(ends, len(prefix)) if prefix else 0
        begin = bisect_right(ends, len(prefix) + text.begin, lo=first)
        end = bisect_left(offsets, len(prefix) + text.end, lo=begin, key=lambda offset: offset[0])
        left, core, right = begin - first, end - begin, len(pieces) - end
        room = max_length - len(head) - len(tail) - first - core
        if room < 0:
            raise ValueError(
                f"train.max_length = {max_length}: {text.text[text.begin : text.end]!r} alone is longer"
                f"\n  accepted: at least {max_length - room}"
            )
        truncated += left + right > room
        left = min(left, max(room // 2, room - right))
        right = min(right, room - left)
        ids.append([*head, *pieces[:first], *pieces[begin - left : end + right], *tail])
        read.append((len(head) + first + left) * [False] + core * [True] + (right + len(tail)) * [False])
    return Tokens(
        np.fromiter(chain.from_iterable(ids), np.int64),
        np.fromiter(map(len, ids), np.int64),
        truncated,
        np.fromiter(chain.from_iterable(read), bool),
    )


def add_tags(backbone: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Add each missing tag as a token to tokenizer and backbone; its vector is the mean of its pieces' vectors.

    A random vector would hardly be learnt: at a rate of 6e-6 Adam moves a coordinate by .014 in an epoch.
    """
    import torch

    known = tokenizer.get_vocab()
    pieces = {
        tag: tokenizer(f"a {tag} a", return_offsets_mapping=True, add_special_tokens=False)
        for tag in TAGS
        if tag not in known
    }
    if not pieces:
        return
    table = backbone.get_input_embeddings().weight.detach()
    means = []
    for tag, encoded in pieces.items():
        offsets = encoded["offset_mapping"]
        places = [at for at, (begin, end) in enumerate(offsets) if end > 1 and begin < 2 + len(tag)]
        means.append(table[[encoded["input_ids"][at] for at in places]].mean(0))
    name_tags(tokenizer)
    backbone.resize_token_embeddings(max(len(tokenizer), len(table)), mean_resizing=False)
    rows = tokenizer.convert_tokens_to_ids(list(pieces))
    with torch.no_grad():
        backbone.get_input_embeddings().weight[rows] = torch.stack(means)


def name_tags(tokenizer: PreTrainedTokenizerBase) -> None:
    """Add each tag as one token to the tokenizer, unless it is there."""
    from transformers import AddedToken

    missing = [tag for tag in TAGS if tag not in tokenizer.get_vocab()]
    # Blanks before a tag belong to it: a lone blank would be a piece of its own in byte-level vocabularies.
    tokenizer.add_tokens([AddedToken(tag, lstrip=True, rstrip=False, normalized=False) for tag in missing])


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that this tokenizer puts before and after every text."""
    whole, plain = (tokenizer("a", add_special_tokens=add)["input_ids"] for add in (True, False))
    before = next(at for at in range(len(whole)) if whole[at : at + len(plain)] == plain)
    return whole[:before], whole[before + len(plain) :]
