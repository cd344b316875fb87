"""What a process of a Ray cluster imports is paid by every one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import semray.testing

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("said", "absent"),
    [
        ("from semray.testing import WORDS, RunResults, outcome, tiny_backbone", ["pytest", "torch"]),
        ("from orchestration.search.asking import ask_for_seeds", ["optuna", "scipy"]),
    ],
)
def test_what_is_light_stays_so(said: str, absent: list[str]) -> None:
    words = f"import sys; {said}; print([name for name in {absent} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_all_that_is_listed_is_there() -> None:
    assert dir(semray.testing) == sorted(semray.testing.__all__)
    assert all(getattr(semray.testing, name) for name in semray.testing.__all__)
    with pytest.raises(AttributeError, match=r"^module 'semray\.testing' has no attribute 'contrct'$"):
        semray.testing.contrct  # type: ignore[attr-defined]  # noqa: B018
