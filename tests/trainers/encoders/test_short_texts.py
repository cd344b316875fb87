"""The kernel for short texts, as Triton's interpreter computes it on a CPU: attention, its gradients, its dropout.

In a process of its own, as Triton reads only once whether it interprets. On a card the kernel itself is asked the
same (`test_on_card.py`).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton comes with torch's build for CUDA")
def test_the_kernel_is_attention() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.interpreted_kernel"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
