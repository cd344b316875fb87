"""A file is written beside its place and takes it whole, whoever else writes the same file at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestration.study.writable import drafted

ANOTHER = """
import sys
from pathlib import Path
from orchestration.study.writable import drafted

with drafted(Path(sys.argv[1])) as draft:
    draft.write_text("another's")
"""


def test_of_two_processes_that_write_one_file_each_writes_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    with drafted(file) as draft:
        draft.write_text("ours")
        subprocess.run([sys.executable, "-c", ANOTHER, str(file)], check=True)
        assert file.read_text() == "another's"
    assert file.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [file]
