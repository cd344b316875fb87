"""Token ids of many texts without padding, and how to cut them into padded groups that waste little."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainers.encoders.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

CELLS = 8192  # of one rectangle, and tokens of one pass, at most
REMEMBERED, REMEMBERED_TEXTS = 8, 50_000  # lists of texts, and the texts of one


@dataclass(frozen=True, eq=False)
class Tokens:
    """N texts as token ids, one after another: text i is `ids[starts[i]:starts[i] + lengths[i]]`.

    ids (M,) int64, lengths (N,) int64, each at least 1. truncated: how many texts were cut at the longest length.
    read (M,) bool: the tokens that a readout averages over, at least one a text; None for all.
    """

    ids: np.ndarray
    lengths: np.ndarray
    truncated: int = 0
    read: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @staticmethod
    def joined(parts: Sequence[Tokens]) -> Tokens:
        """The texts of all parts, in order. Either all say which tokens are read, or none does."""
        read = [part.read for part in parts if part.read is not None]
        assert len(read) in (0, len(parts))
        return Tokens(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            sum(part.truncated for part in parts),
            np.concatenate(read) if read else None,
        )

    @property
    def starts(self) -> np.ndarray:
        """Where each text begins among the ids. (N,)."""
        return np.cumsum(self.lengths) - self.lengths

    def each(self) -> list[np.ndarray]:
        """The ids of each text."""
        return np.split(self.ids, self.starts[1:])

    def differ_from(self, others: Tokens) -> np.ndarray:
        """Whether each text has other ids than the one at its place among as many others. -> (N,) bool."""
        both = zip(self.each(), others.each(), strict=True)
        return np.array([not np.array_equal(one, other) for one, other in both], bool)

    def take(self, texts: np.ndarray) -> Tokens:
        """These texts, in this order. (M,) places -> M texts."""
        lengths = self.lengths[texts]
        places = np.repeat(self.starts[texts], lengths) + within(lengths)
        return Tokens(self.ids[places], lengths, read=None if self.read is None else self.read[places])

    def longest_first(self) -> tuple[Tokens, np.ndarray]:
        """The same texts sorted by falling length, and which text each is; equal lengths keep their order."""
        order = np.argsort(-self.lengths, kind="stable")
        return replace(self.take(order), truncated=self.truncated), order


def within(lengths: np.ndarray) -> np.ndarray:
    """0, 1, 2 … anew for each of several stretches of these lengths. (N,) -> (M,) int64."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def own_tokens(tokens: Tokens, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Places of what is no special token, ascending."""
    return np.flatnonzero(~np.isin(tokens.ids, tokenizer.all_special_ids))


_REMEMBERED: dict[tuple[object, ...], Tokens] = {}  # first in, first out


def remembered(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int, prefix: str = ""
) -> Tokens:
    """As `tokenise`, once for the process: a lane scores run after run on the same texts.

    A tokenizer is known by all that it does, so that one that was changed, or is another's, is another: by its
    file, and by what transformers keeps beside that.
    """
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or len(texts) > REMEMBERED_TEXTS:
        return tokenise(tokenizer, texts, max_length, prefix)
    beside = tokenizer.truncation_side, tokenizer.split_special_tokens
    key = hashlib.sha256(inner.to_str().encode()).digest(), beside, tuple(texts), max_length, prefix
    if key not in _REMEMBERED:
        if len(_REMEMBERED) == REMEMBERED:
            del _REMEMBERED[next(iter(_REMEMBERED))]
        _REMEMBERED[key] = tokenise(tokenizer, texts, max_length, prefix)
    return _REMEMBERED[key]


@dataclass(frozen=True, eq=False)
class Group:
    """Consecutive texts of similar length as one padded rectangle.

    places (n, T): where each token lies in `Tokens.ids`, the group's first token for padding. mask (n, T) bool.
    """

    places: np.ndarray
    mask: np.ndarray

    @property
    def tokens(self) -> int:
        return int(self.mask.sum())


def tokenise(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int, prefix: str = ""
) -> Tokens:
    """Texts as Tokens, special tokens included; longer ones are cut at max_length and counted.

    A text without a token, as an empty one is to GPT-2, is the end of a text alone; others have special tokens.
    """
    given = [prefix + text for text in texts] if prefix else list(texts)
    encodings = tokenizer(
        given,
        add_special_tokens=True,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    encodings = [ids or [_end(tokenizer)] for ids in encodings]
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


def tokenizer_in(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder in hub format; no code from the folder."""
    from transformers import AutoTokenizer

    with quiet():
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _end(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token at the end of a text, or the padding of a tokenizer that knows no end."""
    ends = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    return next((one for one in ends if isinstance(one, int)), 0)


def positions_of(config: Any) -> int | None:
    """Tokens a backbone has positions for, None for any number; RoBERTa and MPNet lose two of them to padding."""
    positions = max(getattr(config, "max_position_embeddings", None) or 0, 0)  # XLNet's -1 stands for any number
    if positions and config.model_type in {"roberta", "xlm-roberta", "mpnet", "camembert"}:
        positions -= 2
    return positions or None


def texts_cut(model: SentenceTransformer, texts: Sequence[str], prompt: str | None = None) -> int:
    """How many of these are longer than the model reads. prompt: stands before each; None is its default."""
    limit = model.max_seq_length
    if not limit:
        return 0
    before = (model.prompts.get(model.default_prompt_name or "") if prompt is None else prompt) or ""
    with quiet():  # it would say of each text that it is too long
        ids = model.tokenizer([before + text for text in texts], truncation=False)["input_ids"]
    return sum(len(row) > limit for row in ids)


def groups(tokens: Tokens, *, slack: int, limit: int = CELLS) -> Iterator[Group]:
    """Cut texts that are sorted by falling length into rectangles of at most `limit` cells.

    A rectangle is closed once its padding exceeds `slack` cells: about what one more rectangle costs, counted in
    tokens. The cut depends on the lengths alone.
    """
    starts, begin = tokens.starts, 0
    while begin < len(tokens):
        longest = int(tokens.lengths[begin])
        room = tokens.lengths[begin : begin + max(1, limit // longest)]
        texts = max(1, int(np.searchsorted(np.cumsum(longest - room), slack, side="right")))
        columns = np.arange(longest)[None, :]
        mask = columns < room[:texts, None]
        yield Group(np.where(mask, starts[begin : begin + texts, None] + columns, starts[begin]), mask)
        begin += texts


def passes(cut: Sequence[Group], *, limit: int) -> Iterator[list[Group]]:
    """Consecutive groups that together hold at most `limit` tokens, or a single larger one."""
    part: list[Group] = []
    for group in cut:
        if part and sum(held.tokens for held in part) + group.tokens > limit:
            yield part
            part = []
        part.append(group)
    if part:
        yield part
