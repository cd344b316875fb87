"""A finished study, whose findings the tests of all figures of a report read."""

from __future__ import annotations

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.verdicts.findings import Findings
from tests.finished_study import findings_of


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_of(Ledger(tmp_path_factory.mktemp("report") / "ledger"))
