"""The shape of an embedding space: how narrow its cone is, and how many directions it uses.

Both figures depend on which texts and how many: they compare arms on one sample, never papers.
Source: Concept, appendix H.
"""

from __future__ import annotations

import numpy as np

from evaluators.metrics.scores import Score
from evaluators.metrics.vectors import unit

PAIRS = 10_000
SAMPLE = 4_096
SEED = 0  # one sample of pairs and rows for every arm and seed
METRICS = {"geometry/anisotropy": False, "geometry/effective_rank": True}


def anisotropy(vectors: np.ndarray, generator: np.random.Generator) -> float:
    """Mean cosine of random pairs of different rows. (N, D) -> scalar in [-1, 1]."""
    return float(random_cosines(vectors, generator).mean())


def random_cosines(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Cosines of `PAIRS` pairs of different rows, drawn with replacement. (N, D) -> (PAIRS,).

    ValueError with fewer than two rows.
    """
    if len(vectors) < 2:
        raise ValueError("anisotropy needs two rows")
    left = generator.integers(len(vectors), size=PAIRS)
    right = generator.integers(len(vectors) - 1, size=PAIRS)
    right += right >= left  # uniform over the other rows
    drawn, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    rows = unit(vectors[drawn].astype(np.float64))  # each once, however often it is drawn
    return np.einsum("nd,nd->n", rows[place[:PAIRS]], rows[place[PAIRS:]])


def effective_rank(matrix: np.ndarray) -> float:
    """exp of the entropy of the singular values, as shares of their sum. (N, D) -> scalar in [1, min(N, D)].

    The rows are taken as they are: neither brought to length 1 nor centred.
    The paper prints no formula: "exponential Shannon entropy of the normalised singular-value spectrum".
    """
    singular = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    share = singular / singular.sum()
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))


def sample(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """At most `SAMPLE` different rows, in their order. (N, D) -> (min(N, SAMPLE), D)."""
    if len(vectors) <= SAMPLE:
        return vectors
    return vectors[np.sort(generator.choice(len(vectors), SAMPLE, replace=False))]


def figures(vectors: np.ndarray) -> dict[str, float]:
    """Anisotropy of these rows, and effective rank of the rows at length 1, from fixed samples. (N, D)."""
    return {
        "anisotropy": anisotropy(vectors, np.random.default_rng(SEED)),
        "effective_rank": effective_rank(unit(sample(vectors, np.random.default_rng(SEED)))),
    }


def geometry_scores(vectors: np.ndarray) -> list[Score]:
    """The two figures as scores of a set of texts. (N, D)."""
    values = figures(vectors)
    return [
        Score(metric=metric, value=values[metric.rpartition("/")[2]], larger_is_better=better)
        for metric, better in METRICS.items()
    ]
