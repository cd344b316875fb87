"""Token ids of many texts without padding, and how to cut them into padded groups that waste little."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from trainers.encoders.backbones import read_json
from trainers.encoders.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

CELLS = 8192  # at most so many cells in a rectangle, and tokens in a pass
REMEMBERED, REMEMBERED_TEXTS = 8, 50_000  # cached lists of texts, and the most texts of a list that is cached


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
        """The texts of all parts, in order. `read` must be set in all parts or in none."""
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
        """Compare texts pairwise with those of another Tokens: True where the ids differ. -> (N,) bool."""
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
    """Positions within consecutive stretches: 0, 1, 2 … restarting for each length. (N,) -> (M,) int64."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def own_tokens(tokens: Tokens, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Ascending places of the tokens that are not special tokens."""
    return np.flatnonzero(~np.isin(tokens.ids, tokenizer.all_special_ids))


_REMEMBERED: dict[tuple[object, ...], Tokens] = {}  # first in, first out


def remembered(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int, prefix: str = ""
) -> Tokens:
    """`tokenise` with a cache for this process: a lane scores run after run on the same texts.

    The cache key holds the tokenizer's whole content, from its file and from transformers' settings beside it, so
    that a changed tokenizer gets entries of its own.
    """
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or len(texts) > REMEMBERED_TEXTS:
        return tokenise(tokenizer, texts, max_length, prefix)
    settings = tokenizer.truncation_side, tokenizer.split_special_tokens, _end(tokenizer)
    key = hashlib.sha256(inner.to_str().encode()).digest(), settings, tuple(texts), max_length, prefix
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
    """Texts as Tokens, special tokens included; texts longer than max_length are cut and counted.

    A text that gives no token, such as "" with GPT-2, becomes the end-of-text token; other tokenizers add special
    tokens to every text.
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
    flat = np.fromiter(chain.from_iterable(encodings), np.int64, count=int(lengths.sum()))
    return Tokens(flat, lengths, truncated=len(long))


def tokenizer_in(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder in hub format, without running code from the folder."""
    from transformers import AutoTokenizer

    with quiet():
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _end(tokenizer: PreTrainedTokenizerBase) -> int:
    """The end-of-text token, or the padding token if the tokenizer has no end-of-text token."""
    ends = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    return next((token for token in ends if isinstance(token, int)), 0)


def positions_of(config: Any) -> int | None:
    """The number of positions of a backbone, None if unlimited; RoBERTa and MPNet reserve two for padding."""
    positions = max(getattr(config, "max_position_embeddings", None) or 0, 0)  # XLNet's -1 stands for any number
    if positions and config.model_type in {"roberta", "xlm-roberta", "mpnet", "camembert"}:
        positions -= 2
    return positions or None


def within_positions(asked: int, config: Any) -> int:
    """So many tokens, or as many as a backbone that sentence-transformers runs has positions for."""
    return min(asked, _bound_of(config) or asked)


def positions_in(folder: Path) -> int | None:
    """The bound of `within_positions` by a folder's configuration; None if there is none."""
    return _bound_of(_config_in(folder))


def _bound_of(config: Any) -> int | None:
    bounded = getattr(config, "position_biased_input", True)  # DeBERTa v2 and v3: relative positions alone
    return positions_of(config) if bounded else None


def _config_in(folder: Path) -> SimpleNamespace:
    return SimpleNamespace(**{"model_type": None, **read_json(folder / "config.json")})


def longest_in(folder: Path) -> int | None:
    """The most tokens of a text that a folder's files let `Encoder` read; None if they do not say."""
    limits = positions_of(_config_in(folder)), read_json(folder / "tokenizer_config.json").get("model_max_length")
    return min((int(limit) for limit in limits if limit is not None), default=None)


def texts_cut(model: SentenceTransformer, texts: Sequence[str], prompt: str | None = None) -> int:
    """How many of these texts the model cuts. prompt: text put before each; None for the model's default."""
    limit = model.max_seq_length
    if not limit:
        return 0
    before = (model.prompts.get(model.default_prompt_name or "") if prompt is None else prompt) or ""
    with quiet():  # it would warn of each text that is too long
        ids = model.tokenizer([before + text for text in texts], truncation=False)["input_ids"]
    return sum(len(row) > limit for row in ids)


def groups(tokens: Tokens, *, slack: int, limit: int = CELLS) -> Iterator[Group]:
    """Cut texts, sorted by falling length, into rectangles of at most `limit` cells.

    A rectangle ends before its padding exceeds `slack` cells, about the cost of one more rectangle. The cut
    depends on the lengths alone.
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
    """Join consecutive groups into passes of at most `limit` tokens; a larger group is a pass alone."""
    part: list[Group] = []
    for group in cut:
        if part and sum(held.tokens for held in part) + group.tokens > limit:
            yield part
            part = []
        part.append(group)
    if part:
        yield part
