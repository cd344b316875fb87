"""The cycle of mask and predict, written out for one token at a time, and batches of a budget."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.san.importance import CODE, Masking, read_scores
from corpora.san.mask_predict import Batch, TaggedTokens, batched, batches, mask_predict
from corpora.san.recipe import SetRecipe
from corpora.san.uniforms import uniforms_at

KINDS = np.array([CODE[name] for name in ("NOUN", "VERB", "PUNCT", "DET", "NOUN", "ADJ")], np.uint8)
NOISE_FROM = 1  # the first lane of noise: 0 draws masks


class Shift:
    """Fills a mask with a word further on, by its tag, or with the rank of the largest noise."""

    name, fingerprint, budget, tags = "words further on", "0", 1, KINDS
    surfaces = ("a", "b", "c", "d", "e", "f")

    def encode(self, texts, most: int) -> list[TaggedTokens]:
        raise NotImplementedError

    def fill(self, batch: Batch, masked: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        new = (batch.ids + 1 + batch.tags % 2) % len(KINDS) if noise is None else noise.argmax(-1)
        return np.where(masked, new, batch.ids).astype(np.int32)


def tokens(ids: list[int]) -> TaggedTokens:
    at = np.arange(len(ids), dtype=np.int32)
    return TaggedTokens(np.array(ids, np.int32), KINDS[ids], 2 * at, 2 * at + 1)


def drawn(sid: np.uint64, iteration: int, place: int, lane: int) -> float:
    """What seed 3 draws for a place of a sentence."""
    return float(uniforms_at(3, sid, np.uint64(iteration), np.uint64(place + 1), np.uint64(lane)))


@pytest.mark.parametrize("decode", ["argmax", "topk"])
@pytest.mark.parametrize("tagging", ["static", "dynamic"])
def test_each_iteration_masks_what_the_one_before_it_filled(tagging, decode):
    """Under static tags a filling is masked as what it is, else as what it replaces."""
    recipe = SetRecipe(scale=12.0, iterations=5, seed=3, tagging=tagging, decode=decode, k=4)
    law, sids = Masking("importance", 12.0, read_scores()), np.array([7, 8, 9], np.uint64)
    rows = [[0, 1, 2, 3, 4, 5], [5, 5], [2, 1, 0, 3]]
    batch = batched([tokens(row) for row in rows], ["x"] * 3, sids)
    found = mask_predict(batch, Shift(), recipe, law)
    moved = 0
    for row, (sid, ids) in enumerate(zip(sids, rows, strict=True)):
        kinds = KINDS[ids].copy()
        for iteration in range(5):
            chances = law.probabilities(kinds)
            hit = [place for place in range(len(ids)) if drawn(sid, iteration, place, 0) < chances[place]]
            ids = list(ids)
            for place in hit:
                # Gumbel noise is a rising function of these numbers: the largest of both is the same
                noise = [drawn(sid, iteration, place, NOISE_FROM + rank) for rank in range(4)]
                step = 1 + int(kinds[place]) % 2
                ids[place] = (ids[place] + step) % 6 if decode == "argmax" else int(np.argmax(noise))
                if tagging == "static":
                    kinds[place] = KINDS[ids[place]]
            assert found.ids[iteration, row, : len(ids)].tolist() == ids
            assert found.masked[iteration, row] == len(hit)
            moved += len(hit)
    assert moved > 20


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["so I.", "so I"]))), st.integers(1, 30))
def test_batches_hold_a_budget_of_padded_tokens_and_no_fewer_rows_than_they_could(texts, budget):
    """A text without a final mark is read with a full stop, which counts."""
    found = batches([tokens([0] * size) for size, _ in texts], [text for _, text in texts], budget)
    lengths = [size + (text == "so I") for size, text in texts]
    assert sorted(row for batch in found for row in batch) == list(range(len(texts)))
    flat = [lengths[row] for batch in found for row in batch]
    assert flat == sorted(flat)
    assert all(len(batch) == 1 or len(batch) * lengths[batch[-1]] <= budget for batch in found)
    assert all((len(batch) + 1) * lengths[after[0]] > budget for batch, after in pairwise(found))
