"""The collection of published files, where it is at hand: $SEMRAY_DATA, else the folder beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COLLECTION = Path(os.environ.get("SEMRAY_DATA") or ROOT.parent / "shared" / "data")


def needs(name: str) -> pytest.MarkDecorator:
    """Skips where the collection does not hold this file or folder."""
    return pytest.mark.skipif(not (COLLECTION / name).exists(), reason=f"no {name} in {COLLECTION}")
