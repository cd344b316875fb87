"""From a file of pairs to a verdict, as docs/own_pairs.md walks it, with a tiny encoder and two seeds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_study_as_it_is() -> None:
    study = (ROOT / "examples" / "pairs" / "mine.yaml").read_text().split("\n", 1)[1]
    page = (ROOT / "docs" / "own_pairs.md").read_text()
    assert f"```yaml\n{study}```" in page


def test_from_a_file_to_a_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    shutil.copytree(ROOT / "examples" / "pairs", folder, ignore=shutil.ignore_patterns("pairs.tsv"))
    study = (folder / "mine.yaml").read_text()
    small = {
        "[all-MiniLM-L6-v2]": f"[{tiny_backbone(tmp_path / 'tiny')}]",
        "seeds: 8": "seeds: 2",
        "60, per_device": "3, per_device",
    }
    for old, new in small.items():
        assert old in study
        study = study.replace(old, new)
    study += "resources: {lanes: 1}\n"  # each imports for longer than it trains
    (folder / "mine.yaml").write_text(study)

    def said(*words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert said("pairs.py", "300") == "pairs.tsv: 300 rows\n"
    planned = said("-m", "orchestration", "plan", "mine.yaml")
    assert "5 runs" in planned
    rows = re.search(
        r"^rows    mine: (\d+) train; held out (\d+) to measure on, (\d+) to choose by$", planned, re.M
    )
    assert rows is not None, planned
    assert sum(map(int, rows.groups())) == 300  # meanings and verbs of different rows share no text
    out = said("-m", "orchestration", "run", "mine.yaml")
    assert re.search(r"^gain +plain - base +held/mine/mrr", out, re.MULTILINE)
    assert re.search(r"^directions +both-ways - plain", out, re.MULTILINE)
    assert (folder / "reports" / "mine" / "report.html").exists()
