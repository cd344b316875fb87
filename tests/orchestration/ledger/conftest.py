"""An object store in memory, for all that is asked of a ledger there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.counting_store import counting_store


@pytest.fixture
def url() -> Iterator[str]:
    """Of an empty ledger."""
    with counting_store() as url:
        yield url
