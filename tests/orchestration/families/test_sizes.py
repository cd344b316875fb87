"""What one step may read has a limit in every family, known before any memory is asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from corpora.store.fields import accepts, field_types, words
from orchestration.families.registry import FAMILIES, family

SIZES = [
    (of, name, kind)
    for one in sorted(FAMILIES)
    for of in (family(one).settings, family(one).data)
    for name, kind in field_types(of).items()
    if name.endswith(("batch_size", "max_length", "max_seq_length"))
]


@pytest.mark.parametrize(("of", "name", "kind"), SIZES, ids=lambda part: getattr(part, "__module__", str(part)))
def test_a_size_has_a_limit(of: type, name: str, kind: Any) -> None:
    assert accepts(kind, 1_000_000), (of, name)
    assert not accepts(kind, 1_000_001)
    least = 3 if name.endswith("length") else 1  # two tokens are special
    assert f"a whole number from {least} to 1,000,000" in words(kind)
    assert not accepts(kind, least - 1)


def test_every_family_that_trains_has_sizes() -> None:
    assert {of.__module__.split(".")[1] for of, _, _ in SIZES} >= {
        "concept", "cale", "defsent", "difficulty", "san", "sentence_transformers",
    }  # fmt: skip
