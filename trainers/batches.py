"""Token ids of many texts without padding, and how to cut them into padded groups that waste little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

GROUP_TOKENS = 4096  # padded tokens of one group at most


@dataclass(frozen=True, eq=False)
class Tokens:
    """N texts as token ids, one after another: text i is `ids[starts[i]:starts[i] + lengths[i]]`.

    ids (M,) int64, lengths (N,) int64, each at least 1. truncated: how many texts were cut at the longest length.
    """

    ids: np.ndarray
    lengths: np.ndarray
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths) - self.lengths


@dataclass(frozen=True, eq=False)
class Group:
    """Texts of similar length as one padded rectangle.

    texts (n,): which texts. places (n, T): where each token lies in `Tokens.ids`, 0 for padding. mask (n, T) bool.
    """

    texts: np.ndarray
    places: np.ndarray
    mask: np.ndarray


def tokenise(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int, prefix: str = ""
) -> Tokens:
    """Texts as Tokens, special tokens included; longer ones are cut at max_length and counted."""
    given = [prefix + text for text in texts] if prefix else list(texts)
    encodings = tokenizer(
        given,
        add_special_tokens=True,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    lengths = np.fromiter(map(len, encodings), np.int64, count=len(encodings))
    long = np.flatnonzero(lengths > max_length)
    if len(long):
        cut = tokenizer(
            [given[text] for text in long],
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        for text, ids in zip(long, cut, strict=True):
            encodings[text], lengths[text] = ids, len(ids)
    flat = np.fromiter((piece for ids in encodings for piece in ids), np.int64, count=int(lengths.sum()))
    return Tokens(flat, lengths, truncated=len(long))


def groups(tokens: Tokens, *, slack: int, limit: int = GROUP_TOKENS) -> Iterator[Group]:
    """Cut the texts, longest first, into rectangles of at most `limit` cells.

    A rectangle is closed once its padding exceeds `slack` cells: about what one more pass through the encoder
    costs, counted in tokens. Texts of one length keep their order, so the cut depends on the lengths alone.
    """
    order = np.argsort(-tokens.lengths, kind="stable")
    starts, begin = tokens.starts, 0
    while begin < len(order):
        longest = int(tokens.lengths[order[begin]])
        room = max(1, limit // longest)
        padding = np.cumsum(longest - tokens.lengths[order[begin : begin + room]])
        texts = order[begin : begin + max(1, int(np.searchsorted(padding, slack, side="right")))]
        mask = np.arange(longest)[None, :] < tokens.lengths[texts, None]
        places = np.where(mask, starts[texts, None] + np.arange(longest)[None, :], 0)
        yield Group(texts, places, mask)
        begin += len(texts)
