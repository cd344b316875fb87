"""Labels of difficulty from the wording of a sentence or a pair, without an encoder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from corpora.sources.texts import word_set

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
PUNCTUATION = frozenset(',;:.!?()[]"')
COORDINATORS = word_set("and or but nor yet so")
SUBORDINATORS = word_set(
    "because although though while when whenever where wherever if unless until since after before that which"
    " who whom whose whether once as"
)
AUXILIARIES = word_set(
    "is are was were be been being am has have had do does did will would can could shall should may might must"
)
PREPOSITIONS = word_set("of in on at to for with by from into over under between about against through")
VERB_LENGTH = 5  # a word this long that ends in -ed or -ing counts as a verb

# The paper names the features and gives no numbers: caps and weights are ours. A label of convenience.
CAP_AND_WEIGHT = {
    "tokens": (40, 0.20),
    "chars": (200, 0.10),
    "punct": (6, 0.10),
    "coord": (4, 0.15),
    "subord": (4, 0.20),
    "clauses": (5, 0.15),
    "args": (10, 0.10),
}


def tokens(text: str) -> list[str]:
    """Lower-cased words of the NFKC text; an apostrophe inside a word belongs to it."""
    return WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'").lower())


def overlap(a: str, b: str) -> float:
    """Jaccard similarity of the two token sets, in [0, 1]; 1 when both are empty."""
    left, right = set(tokens(a)), set(tokens(b))
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def hard_lex(a: Sequence[str], b: Sequence[str], gold: np.ndarray) -> np.ndarray:
    """|overlap - gold| of every pair: how far the wording misleads. (N,) in [0, 1].

    Source: Hwang 2026, equation 3. Reads the gold label and never an embedding.
    """
    return np.abs(np.array([overlap(*pair) for pair in zip(a, b, strict=True)]) - gold)


def per_sentence(a: Sequence[str], b: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """Mean over the pairs that hold a sentence, keyed by its raw text; a pair (s, s) counts once for s."""
    held: dict[str, list[float]] = {}
    for left, right, value in zip(a, b, values, strict=True):
        for sentence in dict.fromkeys((left, right)):
            held.setdefault(sentence, []).append(float(value))
    return {sentence: float(np.mean(found)) for sentence, found in held.items()}


def surface_counts(text: str) -> dict[str, int]:
    """The seven features behind the surface label, as counts."""
    words = tokens(text)
    plain = unicodedata.normalize("NFKC", text)
    coordinators = _among(words, COORDINATORS)
    subordinators = _among(words, SUBORDINATORS)
    verbs = sum(
        word in AUXILIARIES or (len(word) >= VERB_LENGTH and word.endswith(("ed", "ing"))) for word in words
    )
    return {
        "tokens": len(words),
        "chars": len(plain),
        "punct": sum(character in PUNCTUATION for character in plain),
        "coord": coordinators,
        "subord": subordinators,
        "clauses": coordinators + subordinators + plain.count(";"),
        "args": verbs + _among(words, PREPOSITIONS),
    }


def complexity(counts: Mapping[str, int]) -> float:
    """Weighted mean of the capped features, in [0, 1]. Form of the label: Hwang 2026, section 3.2."""
    total = sum(weight for _, weight in CAP_AND_WEIGHT.values())
    return (
        sum(weight * min(counts[feature] / cap, 1.0) for feature, (cap, weight) in CAP_AND_WEIGHT.items()) / total
    )


def surface_complexity(sentences: Iterable[str]) -> np.ndarray:
    """The surface label of every sentence. (N,) in [0, 1]."""
    return np.array([complexity(surface_counts(sentence)) for sentence in sentences])


def _among(words: list[str], known: frozenset[str]) -> int:
    return sum(word in known for word in words)
