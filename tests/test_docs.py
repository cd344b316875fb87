"""`make docs`: the pages build as a site, with every link between them, and a reader's browser fetches nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_site_builds_and_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="`pip install -c constraints.txt '.[docs]'`")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").glob("*.html"))
    assert {page.stem for page in pages} >= {page.stem for page in (ROOT / "docs").glob("*.md")}
    for page in (page for page in pages if page.name != "404.html"):  # that one is for a site's root
        fetched = re.findall(
            r'<(?:script|img|iframe)[^>]*src="(https?:[^"]*)"|<link[^>]*href="(https?:[^"]*)"', page.read_text()
        )
        assert fetched == []
        for target in re.findall(r'href="([^":#?]+\.html)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"
