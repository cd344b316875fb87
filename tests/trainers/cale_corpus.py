"""A corpus of made-up occurrences for the cale family: every lemma has two concepts, every concept two lemmas."""

from __future__ import annotations

import numpy as np

from corpora.cale.records import CATEGORIES, CaleCorpus, OccurrencePairs, Occurrences, Tagged
from corpora.sources.occurrences import Occurrence
from tests.tiny import WORDS

LEMMAS = ("cat", "dog", "bird", "horse", "house", "town", "river", "stone")


def made_occurrences(each: int = 6, seed: int = 0) -> Occurrences:
    """Occurrence k of a lemma carries its first concept or, for odd k, the next lemma's; contexts hint at which."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, lemma in enumerate(LEMMAS):
        for number in range(each):
            concept = (place + number % 2) % len(LEMMAS)
            context = list(rng.choice(WORDS, 3 + rng.integers(8)))
            at = int(rng.integers(len(context) + 1))
            words = [*context[:at], lemma, *context[at:], WORDS[30 + concept]]
            start = len(" ".join(words[:at])) + (at > 0)
            occurrence = Occurrence(" ".join(words), start, start + len(lemma), lemma)
            rows.append(Tagged(f"made:{place}:{number}", occurrence, f"n{concept}", split="train"))
    return Occurrences.of(rows)


def every_pair(occurrences: Occurrences, per_category: int, seed: int = 0) -> OccurrencePairs:
    """That many pairs of each category, drawn from all there are."""
    count = len(occurrences)
    anchor, partner = (side.ravel() for side in np.indices((count, count)))
    apart = anchor != partner
    anchor, partner = anchor[apart], partner[apart]
    lemma, concept = occurrences.lemma, occurrences.concept
    category = 2 * (concept[anchor] != concept[partner]) + (lemma[anchor] != lemma[partner])
    rng = np.random.default_rng(seed)
    rows = np.sort(
        np.concatenate(
            [rng.permutation(np.flatnonzero(category == code))[:per_category] for code in range(len(CATEGORIES))]
        )
    )
    return OccurrencePairs(
        anchor[rows].astype(np.int32), partner[rows].astype(np.int32), category[rows].astype(np.uint8)
    )


def cale_corpus(per_category: int = 20) -> CaleCorpus:
    occurrences = made_occurrences()
    pairs = {
        split: every_pair(occurrences, per_category, seed) for seed, split in enumerate(("train", "val", "test"))
    }
    return CaleCorpus(
        occurrences=occurrences,
        pairs=pairs,
        wu_palmer=np.linspace(0, 1, len(pairs["test"])),
        threshold=np.arange(per_category),
        unseen=np.zeros(0, np.int64),
        fingerprint="made",
        digests={},
    )
