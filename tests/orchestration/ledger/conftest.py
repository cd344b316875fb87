"""Empty ledgers in a folder, in memory and in object stores."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from tests.buckets import s3_bucket
from tests.counting_store import counting_store


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_bucket() as url:
        yield url


@pytest.fixture(params=["local", "memory", "s3"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "local":
        return Ledger(tmp_path / "ledger")
    if request.param == "memory":
        return Ledger(f"memory://{uuid.uuid4().hex}")
    return Ledger(f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}")


@pytest.fixture
def url() -> Iterator[str]:
    """Of an empty ledger on an object store that counts its requests."""
    with counting_store() as url:
        yield url
