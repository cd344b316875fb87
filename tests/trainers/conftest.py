"""What tests of every trainer share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import tiny_backbone


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of three layers, the same in every test."""
    return tiny_backbone(tmp_path_factory.mktemp("backbone") / "tiny")
