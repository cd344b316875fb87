"""What belongs to a ledger lies beside it, or here where the ledger is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.ledger.beside import beside


@pytest.mark.parametrize(
    ("url", "expected"),
    [("ledger", "."), ("/data/ledger", "/data"), ("a/b/ledger", "a/b"), ("s3://bucket/x", ".")],
)
def test_beside(url: str, expected: str) -> None:
    assert beside(url) == Path(expected)
