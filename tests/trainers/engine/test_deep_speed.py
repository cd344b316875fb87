"""DeepSpeed in a process that trains: what it brings along, and what not."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import sys
import trainers.engine.deep_speed
print("mlflow" in sys.modules, "deepspeed.runtime.engine" in sys.modules)
import mlflow
print(mlflow.__version__)
"""


def test_it_comes_without_mlflow_which_is_there_for_who_asks() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    before, version = done.stdout.splitlines()[-2:]  # DeepSpeed remarks on a machine without a GPU
    assert before == "False True"
    assert version[0].isdigit()
