"""What the tests of lanes share: a Ray of two cores for a file, and a ledger that is driven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.lanes.cluster import connected
from orchestration.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def ray_of_two(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lanes have no tests to import: what a file hands to them goes there whole.

    How many threads a lane computes in is the lane's to say: its node is told another number.
    """
    import ray

    with pytest.MonkeyPatch.context() as node:
        node.setenv("OMP_NUM_THREADS", "2")
        with connected(2):
            ray.cloudpickle.register_pickle_by_value(request.module)
            yield


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger")
    with ledger.drive("study"):
        yield ledger
