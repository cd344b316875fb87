"""The mask-predict cycle: draw masks by part of speech, let a generator fill them, and repeat on the new tokens.

    rewritten = mask_predict(batch, generator, recipe, masking)

Source: SAN, section 3.1 and figure 1. Departures from the released code: iterations work on token ids, so no text
is tokenised again; only masked positions are filled; the result is the original text with the new words in place.
The generator that fills masks is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from corpora.san.importance import SPECIAL, Masking
from corpora.san.recipe import SetRecipe
from corpora.san.uniforms import uniforms_at

UNKNOWN = -1  # in place of an id: padding, or a token outside the vocabulary


class TaggedTokens(NamedTuple):
    """A sentence's tokens: ids, tags (codes of POS), first and last + 1 character in the text; (T,) each."""

    ids: np.ndarray
    tags: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Batch(NamedTuple):
    """B sentences. ids (B, T) int32, UNKNOWN after a sentence's end; tags (B, T) uint8, SPECIAL there.

    sids (B,) uint64: numbers of the sentences; lengths (B,): of tokens; marked (B,) bool: has a final mark.
    """

    ids: np.ndarray
    tags: np.ndarray
    sids: np.ndarray
    lengths: np.ndarray
    marked: np.ndarray


class Generator(Protocol):
    """Fills masks.

    name: in words, for every output; a stand-in says that it is one. fingerprint: a hash of all that can change
    the fillings. surfaces (V): the text of each vocabulary entry, without `##` or `Ġ`. tags (V,) uint8: the static
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
        """New ids, (B, T): fillings at masked positions, the batch's ids elsewhere.

        masked (B, T) bool. noise: None for the best filling of each mask, or (B, T, k) Gumbel noise to add to the
        scores of the k best.
        """
        ...


class Rewritten(NamedTuple):
    """ids (iterations, B, T) int32 after each iteration; masked (iterations, B): tokens masked in it."""

    ids: np.ndarray
    masked: np.ndarray


def mask_predict(batch: Batch, generator: Generator, recipe: SetRecipe, masking: Masking) -> Rewritten:
    """Rewrite a batch. Its composition and order only change the rounding of a neural generator."""
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
    """Put sentences into one batch, padded to the longest."""
    lengths = np.array([len(each.ids) for each in tokens])
    shape = (len(tokens), int(lengths.max(initial=0)))
    ids, tags = np.full(shape, UNKNOWN, np.int32), np.full(shape, SPECIAL, np.uint8)
    for row, each in enumerate(tokens):
        ids[row, : len(each.ids)], tags[row, : len(each.ids)] = each.ids, each.tags
    marked = np.array([ends_marked(text) for text in texts])
    return Batch(ids, tags, sids, lengths, marked)


def ends_marked(text: str) -> bool:
    """Whether a sentence ends with a mark; others are read with a full stop."""
    return not text.rstrip()[-1:].isalnum()


def batches(tokens: Sequence[TaggedTokens], texts: Sequence[str], budget: int) -> list[list[int]]:
    """Group rows of similar length into batches of at most `budget` tokens, padding included.

    Lengths include the full stop that a sentence without a final mark is read with.
    """
    both = zip(tokens, texts, strict=True)
    lengths = [len(each.ids) + (not ends_marked(text)) for each, text in both]
    groups: list[list[int]] = []
    for row in sorted(range(len(tokens)), key=lambda row: (lengths[row], row)):
        if not groups or (len(groups[-1]) + 1) * lengths[row] > budget:
            groups.append([])
        groups[-1].append(row)
    return groups
