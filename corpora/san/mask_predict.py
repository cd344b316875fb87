"""The mask-predict cycle: draw masks by part of speech, let a generator fill them, read the new tokens, again.

    rewritten = mask_predict(batch, generator, recipe, masking)

Source: SAN, section 3.1 and figure 1. Departures from the released code: token ids all the way, so that no round
re-tokenises text; masked positions alone are filled; the sentence is its own text with the new words put in place.
Who fills the masks is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from corpora.san.importance import SPECIAL, Masking
from corpora.san.recipe import SetRecipe
from corpora.san.uniforms import uniforms_at

UNKNOWN = -1  # in place of an id: padding, or a token that the vocabulary lacks


class TaggedTokens(NamedTuple):
    """A sentence's tokens: ids, tags (codes of POS), first and last + 1 character in the text; (T,) each."""

    ids: np.ndarray
    tags: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Batch(NamedTuple):
    """B sentences. ids (B, T) int32, UNKNOWN after a sentence's end; tags (B, T) uint8, SPECIAL there.

    sids (B,) uint64 number the sentences; lengths (B,) count their tokens; marked (B,) bool: ends with a mark.
    """

    ids: np.ndarray
    tags: np.ndarray
    sids: np.ndarray
    lengths: np.ndarray
    marked: np.ndarray


class Generator(Protocol):
    """Who fills the masks.

    name: in words, for every output; a stand-in says that it is one. fingerprint: names all that can change what
    it fills. surfaces (V): the text of each entry, without the mark of its kind. tags (V,) uint8: the static
    lexicon. budget: tokens of a batch.
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def surfaces(self) -> Sequence[str]: ...
    @property
    def tags(self) -> np.ndarray: ...
    @property
    def budget(self) -> int: ...

    def encode(self, texts: Sequence[str], most: int) -> list[TaggedTokens]:
        """The first `most` tokens of each text."""
        ...

    def fill(self, batch: Batch, masked: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        """New ids, (B, T): at masked positions the fillings, elsewhere what was there.

        masked (B, T) bool. noise: None to take the best filling of each, or (B, T, k) Gumbel numbers to add to the
        scores of the k best.
        """
        ...


class Rewritten(NamedTuple):
    """ids (iterations, B, T) int32 after each iteration; masked (iterations, B): tokens masked in it."""

    ids: np.ndarray
    masked: np.ndarray


def mask_predict(batch: Batch, generator: Generator, recipe: SetRecipe, masking: Masking) -> Rewritten:
    """Rewrite a batch. Its composition and order change nothing but how a neural generator rounds."""
    ids, tags = batch.ids, batch.tags
    positions = np.arange(1, ids.shape[1] + 1, dtype=np.uint64)[None, :]  # 0 would be [CLS]
    sids = batch.sids[:, None]
    states, counts = [], []
    for iteration in range(recipe.iterations):
        drawn = uniforms_at(recipe.seed, sids, np.uint64(iteration), positions, np.uint64(0))
        masked = drawn < masking.probabilities(tags)
        noise = _gumbel(recipe, sids, iteration, positions) if recipe.decode == "topk" else None
        filled = generator.fill(batch._replace(ids=ids, tags=tags), masked, noise)
        if recipe.tagging == "static":
            tags = np.where(filled != ids, generator.tags[filled], tags)
        ids = filled
        states.append(ids)
        counts.append(masked.sum(1))
    return Rewritten(np.stack(states), np.stack(counts))


def _gumbel(recipe: SetRecipe, sids: np.ndarray, iteration: int, positions: np.ndarray) -> np.ndarray:
    """(B, T, k): lane 1 + r for the r-th best."""
    lanes = [
        uniforms_at(recipe.seed, sids, np.uint64(iteration), positions, np.uint64(1 + r)) for r in range(recipe.k)
    ]
    return -np.log(-np.log(np.maximum(np.stack(lanes, -1), 2.0**-54)))


def batched(tokens: Sequence[TaggedTokens], texts: Sequence[str], sids: np.ndarray) -> Batch:
    """Sentences as one batch, as wide as the longest."""
    lengths = np.array([len(each.ids) for each in tokens])
    shape = (len(tokens), int(lengths.max(initial=0)))
    ids, tags = np.full(shape, UNKNOWN, np.int32), np.full(shape, SPECIAL, np.uint8)
    for row, each in enumerate(tokens):
        ids[row, : len(each.ids)], tags[row, : len(each.ids)] = each.ids, each.tags
    marked = np.array([ends_marked(text) for text in texts])
    return Batch(ids, tags, sids, lengths, marked)


def ends_marked(text: str) -> bool:
    """Whether a sentence ends with a mark; one that does not is read with a full stop."""
    return not text.rstrip()[-1:].isalnum()


def batches(tokens: Sequence[TaggedTokens], texts: Sequence[str], budget: int) -> list[list[int]]:
    """Rows by length in batches of at most `budget` tokens, short ones filled up to the longest; each row in one.

    The length is the one that is read, full stop included.
    """
    both = zip(tokens, texts, strict=True)
    lengths = [len(each.ids) + (not ends_marked(text)) for each, text in both]
    groups: list[list[int]] = []
    for row in sorted(range(len(tokens)), key=lambda row: (lengths[row], row)):
        if not groups or (len(groups[-1]) + 1) * lengths[row] > budget:
            groups.append([])
        groups[-1].append(row)
    return groups
