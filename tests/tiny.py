"""Small enough to train in a test: a randomly initialised BERT with a vocabulary of its own, and a corpus for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semray.testing.tiny import SPECIAL, WORDS, tiny_backbone

if TYPE_CHECKING:
    from corpora.concept.records import ConceptCorpus

__all__ = ["SPECIAL", "WORDS", "tiny_backbone", "tiny_corpus"]


def tiny_corpus(concepts: int = 24, seed: int = 0) -> ConceptCorpus:
    """A corpus of made-up concepts: two names, a definition and up to three wrong definitions of each.

    Concept i has the names `<word><letter>` and `<letter><word>`; every fourth concept shares an id with the next.
    """
    import numpy as np
    import pyarrow as pa

    from corpora.concept.records import ConceptCorpus, PairRows, RuleNegatives
    from corpora.store.columns import Ragged, Texts

    rng = np.random.default_rng(seed)
    names, definitions = [], []
    for concept in range(concepts):
        word, letter = WORDS[concept % len(WORDS)], chr(ord("a") + concept % 26)
        names.append((f"{word} {letter}", f"{letter} {word}"))
        definitions.append(" ".join(rng.choice(WORDS, 3 + concept % 7)))
    texts = [*(side for pair in names for side in pair), *definitions, *(f"not {text}" for text in definitions)]
    place = np.arange(concepts, dtype=np.int32)
    ids = Ragged.of([[concept, concepts + concept // 4] if concept % 4 < 2 else [concept] for concept in place])
    wrong = [
        [3 * concepts + row, *((2 * concepts + rng.permutation(concepts)[: row % 3]).tolist())] for row in place
    ]
    negatives = Ragged.of(wrong)
    none = np.zeros(len(negatives.values), np.uint8)
    return ConceptCorpus(
        texts=Texts(pa.array(texts)),
        syn=PairRows("syn", 2 * place, 2 * place + 1, ids),
        t2d=PairRows("t2d", 2 * place, 2 * concepts + place, ids),
        negatives=RuleNegatives(negatives, none, none),
        splits={},
        fingerprint=f"tiny-{concepts}-{seed}",
        digests={},
    )
