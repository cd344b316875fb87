"""A corpus of made-up sentences with negations, two sets of negatives and labels, for tests of training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from corpora.san.records import BIT, AlignedSet, SanCorpus
from corpora.store.columns import Texts
from tests.tiny import WORDS


def texts_of(rows: list[str]) -> Texts:
    return Texts(pa.array(rows, pa.large_string()))


def san_corpus(size: int = 40, teachers: Mapping[str, str] | None = None) -> SanCorpus:
    """Row 3 has a negative that says the same, row 5 none at all, row 7 one of low quality; 8 and 9 are one sentence."""
    rng = np.random.default_rng(5)
    sentences = [" ".join(rng.choice(WORDS, 4 + row % 6)) for row in range(size)]
    sentences[9] = sentences[8]
    last = [f"any {sentence.split(' ', 1)[1]} too" for sentence in sentences]
    last[3], last[5] = sentences[3], ""
    flags = np.zeros(size, np.uint16)
    flags[3], flags[5], flags[7] = BIT["identical"], BIT["empty"], BIT["punct"] | BIT["authors"]
    made = AlignedSet(
        last=texts_of(last),
        earlier=texts_of([""] * size),
        flags=flags,
        kept=np.ones(size, np.float32),
        masked=np.ones((size, 4), np.int16),
        generator="made up",
        id="made-up",
    )
    soft = [f"not {sentence}" for sentence in sentences]
    soft[5] = ""
    return SanCorpus(
        sentences=texts_of(sentences),
        soft=texts_of(soft),
        negator="made up",
        sets={"san": made},
        entailed=texts_of([" ".join(sentence.split()[:-1]) for sentence in sentences]),
        contradicted=texts_of([f"no {sentence}" for sentence in sentences]),
        teachers=teachers or {},
        fingerprint=f"made-up-{size}",
    )
