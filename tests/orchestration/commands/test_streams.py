"""The streams of a program that calls a command itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CALLS = """
import sys
from orchestration.commands.cli import main
sys.stdout = open(sys.argv[1], "w")
assert [main(["check-claim", "80", "81"]) for _ in range(2)] == [0, 0]
print("after", flush=True)
"""


def test_a_stream_that_a_program_put_in_place_stays_its_own(tmp_path: Path) -> None:
    said = tmp_path / "said"
    subprocess.run([sys.executable, "-c", CALLS, str(said)], check=True)
    assert said.read_text().count("difference") == 2
    assert said.read_text().endswith("after\n")
