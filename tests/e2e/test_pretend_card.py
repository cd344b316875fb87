"""Every family trains and is scored on a device that is not the CPU: no tensor is on the wrong one, no step waits.

In float32; some arms, which have all that autocast changes, in bf16 too.
In a process of its own: `tests.pretend_card` changes torch for all that comes after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = "tests/orchestration/families/test_contract.py"
ON_CARD = (
    "tests/trainers/encoders/test_on_card.py",
    "tests/trainers/engine/test_transfers.py",
    "tests/orchestration/families/test_bf16_on_card.py",
)
TRAINED = "same_bits and not command and not roberta"  # a script chooses its device itself
STACKED = "stack_trains and concept"


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_families_on_a_card_that_is_none() -> None:
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.pretend_card", CONTRACT, *ON_CARD]
    chosen = ["-k", f"({TRAINED}) or ({STACKED}) or on_card", "-m", "not long"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *chosen],
        cwd=ROOT,
        env={**os.environ, "SEMRAY_TEST_DEVICE": "card:0", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-6000:] + told.stderr[-2000:]
    assert " passed" in told.stdout
