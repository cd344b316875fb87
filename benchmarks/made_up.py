"""Sentences that anyone can make up anywhere: what steps are timed on where no data may be fetched."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from corpora.san.records import SanCorpus
from corpora.store.columns import Texts
from semray.testing import WORDS


@cache
def corpus(size: int) -> SanCorpus:
    """Made-up sentences of 6 to 24 words, each a token."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(6, 25, size)
    words = iter(draw.choice(WORDS, int(lengths.sum())).tolist())
    rows = Texts(pa.array([" ".join(next(words) for _ in range(length)) for length in lengths], pa.large_string()))
    return SanCorpus(
        sentences=rows, soft=rows, negator="made up", sets={}, entailed=None, contradicted=None, teachers={},
        fingerprint=f"made-up-{size}",
    )  # fmt: skip
