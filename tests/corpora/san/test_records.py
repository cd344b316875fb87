"""Which text serves as a row's negative, by rule."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpora.san.records import BIT, EARLIER, NONE, SAN, SOFT, AlignedSet, SanCorpus
from corpora.store.columns import Texts


def texts(*given: str) -> Texts:
    return Texts(pa.array(given, pa.large_string()))


def corpus(*rows: tuple[str, str, str, int]) -> SanCorpus:
    """Rows of (soft, last, earlier, flags)."""
    soft, last, earlier, flags = zip(*rows, strict=True)
    aligned = AlignedSet(
        last=texts(*last),
        earlier=texts(*earlier),
        flags=np.array(flags, np.uint16),
        kept=np.ones(len(rows), np.float32),
        masked=(np.ones(len(rows), np.int16),),
        generator="none",
        id="0",
    )
    return SanCorpus(
        sentences=texts(*("x" for _ in rows)),
        soft=texts(*soft),
        negator="none",
        sets={"san": aligned},
        fingerprint="f",
    )


@pytest.mark.parametrize(
    ("row", "rule", "source", "text"),
    [
        (("soft", "last", "first", 0), "semray", SAN, "last"),
        (("soft", "last", "first", BIT["repeat"]), "semray", SOFT, "soft"),
        (("", "last", "first", BIT["repeat"]), "semray", EARLIER, "first"),
        (("", "last", "", BIT["repeat"]), "semray", NONE, ""),
        (("soft", "last", "first", BIT["repeat"]), "authors", SAN, "last"),
        (("soft", "last", "first", BIT["authors"]), "semray", SAN, "last"),
        (("soft", "last", "first", BIT["authors"]), "authors", SOFT, "soft"),
        (("", "last", "first", BIT["authors"]), "authors", NONE, ""),
        (("soft", "last", "first", BIT["identical"] | BIT["authors"]), "off", SAN, "last"),
        (("soft", "", "first", BIT["empty"]), "off", NONE, ""),
    ],
)
def test_the_text_that_serves(row, rule, source, text):
    negatives = corpus(row).negatives("san", rule=rule)
    assert negatives.source.tolist() == [source]
    assert negatives.take([0]) == [text]


def test_rows_of_several_sources_keep_their_order():
    rows = corpus(("a", "b", "", 0), ("c", "d", "", BIT["punct"]), ("", "e", "f", BIT["unk"]), ("", "g", "", 2))
    negatives = rows.negatives("san", rule="semray")
    assert negatives.take([3, 1, 0, 2, 1]) == ["", "c", "b", "f", "c"]
    assert len(negatives) == len(rows) == 4
